package rival

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

// ErrIperf reports a failure of iperf3.
var ErrIperf = errors.New("iperf3")

// Program is the program that generates flows of TCP and UDP.
const Program = "iperf3"

// Iperf has flows of iperf3 from one host of a network to another.
type Iperf struct{ server, client *lab.Program }

// StartCubic starts flows of the kernel's TCP with Cubic for a time.
func StartCubic(ctx context.Context, n *topology.Network, from, to string, flows int, length time.Duration) (*Iperf,
	error) {
	return startIperf(ctx, n, from, to, length, "--congestion", "cubic", "--parallel", strconv.Itoa(flows))
}

// StartUDP starts a flow of UDP for a time, with a rate in bit/s and datagrams of a size without headers. The rates of
// Wait are those of the sender.
func StartUDP(ctx context.Context, n *topology.Network, from, to string, bps int64, size int,
	length time.Duration) (*Iperf, error) {
	return startIperf(ctx, n, from, to, length, "--udp", "--bitrate", strconv.FormatInt(bps, 10), "--length",
		strconv.Itoa(size))
}

// startIperf starts a server and a client with some arguments.
func startIperf(ctx context.Context, n *topology.Network, from, to string, length time.Duration, more ...string) (
	*Iperf, error) {
	c := &Iperf{}
	var err error
	listens := make(listening, 1)
	// The server ends with its first client. Its messages go to standard error, because standard output is read only at
	// the end.
	server := n.Command(ctx, to, "sh", "-c", "exec "+Program+" --server --one-off --forceflush >&2")
	if c.server, err = lab.StartCommand("iperf3 -s", server, listens); err != nil {
		return nil, err
	}
	if _, err := lab.AwaitSign(ctx, c.server, listens, readyTime); err != nil {
		return nil, errors.Join(ErrIperf, err, c.server.Stop())
	}
	arguments := append([]string{
		"--client", n.Address(to).String(), "--time", strconv.Itoa(max(1, int(length.Seconds()))), "--interval", "1",
		"--json", "--connect-timeout", "5000",
	}, more...)
	if c.client, err = lab.StartCommand("iperf3 -c", n.Command(ctx, from, Program, arguments...), nil); err != nil {
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

// Wait waits for the end, and returns the rate of all flows together, second by second. The error wraps ErrIperf.
func (c *Iperf) Wait(ctx context.Context) ([]Rate, error) {
	ctx, cancel := context.WithTimeout(ctx, endingTime)
	defer cancel()
	if err := c.client.Wait(ctx); err != nil {
		c.Stop()
		return nil, fmt.Errorf("%w: %w", ErrIperf, err)
	}
	c.Stop()
	return ParseRates(c.client.Output())
}

// Failure returns an error if the client or the server has ended with a failure.
func (c *Iperf) Failure() error {
	if err := failureOf(c.client, c.server); err != nil {
		return fmt.Errorf("%w: %w", ErrIperf, err)
	}
	return nil
}

// Stop ends server and client. Their exit status after SIGTERM is not a failure.
func (c *Iperf) Stop() {
	_ = c.client.Stop()
	_ = c.server.Stop()
}

// Rate is the rate between two times, in bit/s.
type Rate struct {
	From, Until float64 // in seconds
	BPS         float64
}

// maxOutput bounds the output read from iperf3: an hour of seconds is some 5 MB.
const maxOutput = 64 << 20

// ParseRates parses the output of iperf3 --json. The error wraps ErrIperf.
func ParseRates(text []byte) ([]Rate, error) {
	if len(text) > maxOutput {
		return nil, fmt.Errorf("%w: printed %d bytes, expected at most %d", ErrIperf, len(text), maxOutput)
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
		return nil, fmt.Errorf("%w: expected one JSON object: %w", ErrIperf, err)
	}
	if report.Error != "" {
		return nil, fmt.Errorf("%w: %s", ErrIperf, report.Error)
	}
	var rates []Rate
	for _, i := range report.Intervals {
		rates = append(rates, Rate{i.Sum.Start, i.Sum.End, i.Sum.BPS})
	}
	if len(rates) == 0 {
		return nil, fmt.Errorf("%w: iperf3 reported no interval", ErrIperf)
	}
	return rates, nil
}

// MeanRate returns the mean rate between two times.
func MeanRate(rates []Rate, from, until float64) float64 {
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
