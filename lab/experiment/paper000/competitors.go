package paper000

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
)

// errCompetitors reports a failure of iperf3.
var errCompetitors = errors.New("iperf3")

// competitor is the program that generates the competing flows.
const competitor = "iperf3"

// competitors are TCP flows of the kernel, from one host to another.
type competitors struct{ server, client *lab.Program }

// startCompetitors starts the given number of TCP flows with Cubic for a time.
func startCompetitors(ctx context.Context, n *topology.Network, from, to string, flows int,
	length time.Duration) (*competitors, error) {
	c := &competitors{}
	var err error
	listens := make(listening, 1)
	// The server ends with its first client. Its messages go to standard error, because standard output is read only at
	// the end.
	server := n.Command(ctx, to, "sh", "-c", "exec "+competitor+" --server --one-off --forceflush >&2")
	if c.server, err = lab.StartCommand("iperf3 -s", server, listens); err != nil {
		return nil, err
	}
	if _, err := lab.AwaitSign(ctx, c.server, listens, readyTime); err != nil {
		return nil, errors.Join(errCompetitors, err, c.server.Stop())
	}
	arguments := []string{
		"--client", n.Address(to).String(), "--congestion", "cubic", "--parallel", strconv.Itoa(flows), "--time",
		strconv.Itoa(max(1, int(length.Seconds()))),
		"--interval", "1", "--json", "--connect-timeout", "5000",
	}
	if c.client, err = lab.StartCommand("iperf3 -c", n.Command(ctx, from, competitor, arguments...), nil); err != nil {
		return nil, errors.Join(err, c.server.Stop())
	}
	return c, nil
}

// listening is signalled when iperf3 reports that it listens. An earlier client would be refused.
type listening chan struct{}

// Write implements io.Writer. iperf3 writes the line in one call.
func (l listening) Write(data []byte) (int, error) {
	if bytes.Contains(data, []byte("listening")) {
		select {
		case l <- struct{}{}:
		default:
		}
	}
	return len(data), nil
}

// readyTime is the time limit for the server to listen.
const readyTime = 10 * time.Second

// endingTime is the time limit for iperf3 beyond its duration: iperf3 waits until all data has arrived.
const endingTime = 10 * time.Second

// wait waits for the end, and returns the rate of all flows together, second by second.
func (c *competitors) wait(ctx context.Context) ([]rate, error) {
	ctx, cancel := context.WithTimeout(ctx, endingTime)
	defer cancel()
	if err := c.client.Wait(ctx); err != nil {
		c.stop()
		return nil, fmt.Errorf("%w: %w", errCompetitors, err)
	}
	c.stop()
	return parseCompetitors(c.client.Output())
}

// stop ends server and client. Their exit status after SIGTERM is not a failure.
func (c *competitors) stop() {
	_ = c.client.Stop()
	_ = c.server.Stop()
}

// rate is the rate between two times.
type rate struct {
	From, Until float64 // in seconds
	BPS         float64
}

// maxCompetitors bounds the output read from iperf3: an hour of seconds is some 5 MB.
const maxCompetitors = 64 << 20

// parseCompetitors parses the output of iperf3 --json.
func parseCompetitors(text []byte) ([]rate, error) {
	if len(text) > maxCompetitors {
		return nil, fmt.Errorf("%w: printed %d bytes, expected at most %d", errCompetitors, len(text), maxCompetitors)
	}
	var report struct {
		Error     string `json:"error"`
		Intervals []struct {
			Sum struct {
				Start float64 `json:"start"`
				End   float64 `json:"end"`
				BPS   float64 `json:"bits_per_second"`
			} `json:"sum"`
		} `json:"intervals"`
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&report); err != nil {
		return nil, fmt.Errorf("%w: expected one JSON object: %w", errCompetitors, err)
	}
	if report.Error != "" {
		return nil, fmt.Errorf("%w: %s", errCompetitors, report.Error)
	}
	var rates []rate
	for _, i := range report.Intervals {
		rates = append(rates, rate{i.Sum.Start, i.Sum.End, i.Sum.BPS})
	}
	if len(rates) == 0 {
		return nil, fmt.Errorf("%w: iperf3 reported no interval", errCompetitors)
	}
	return rates, nil
}

// meanRate returns the mean rate between two times.
func meanRate(rates []rate, from, until float64) float64 {
	sum, took := 0.0, 0.0
	for _, r := range rates {
		if overlap := min(r.Until, until) - max(r.From, from); overlap > 0 {
			sum += r.BPS * overlap
			took += overlap
		}
	}
	if took == 0 {
		return 0
	}
	return sum / took
}
