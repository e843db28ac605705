package rival

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
)

// ErrPrague reports a failure of vollab rival prague.
var ErrPrague = errors.New("vollab rival prague")

// Pragues has processes of vollab rival prague: a receiver, and a sender for each flow.
type Pragues struct {
	receiver *lab.Program
	senders  []*lab.Program
}

// StartPragues starts flows with Prague for a time, with the program vollab.
func StartPragues(ctx context.Context, n *topology.Network, vollab, from, to string, flows int,
	length time.Duration) (*Pragues, error) {
	p := &Pragues{}
	var err error
	listens := make(receiving, 1)
	receiver := n.Command(ctx, to, vollab, "rival", "prague", "--listen", net.JoinHostPort(n.Address(to).String(), "0"))
	if p.receiver, err = lab.StartCommand("vollab rival prague --listen", receiver, listens); err != nil {
		return nil, err
	}
	address, err := lab.AwaitSign(ctx, p.receiver, listens, readyTime)
	if err != nil {
		return nil, errors.Join(ErrPrague, err, p.receiver.Stop())
	}
	for range flows {
		sender, err := lab.StartCommand("vollab rival prague --to", n.Command(ctx, from, vollab, "rival", "prague",
			"--to", address, "--json", "--seconds", strconv.FormatFloat(length.Seconds(), 'f', 3, 64)), nil)
		if err != nil {
			p.Stop()
			return nil, err
		}
		p.senders = append(p.senders, sender)
	}
	return p, nil
}

// receiving receives the address of a receiver.
type receiving chan string

// Write implements io.Writer. The receiver writes its address in one call.
func (r receiving) Write(data []byte) (int, error) {
	var said struct {
		Ready string `json:"ready"`
	}
	if json.Unmarshal(data, &said) == nil && said.Ready != "" {
		select {
		case r <- said.Ready:
		default:
		}
	}
	return len(data), nil
}

// Wait waits for the end, and returns the rate of all flows together, second by second. The error wraps ErrPrague.
func (p *Pragues) Wait(ctx context.Context) ([]Rate, error) {
	ctx, cancel := context.WithTimeout(ctx, endingTime)
	defer cancel()
	defer p.Stop()
	var flows [][]Rate
	for _, s := range p.senders {
		if err := s.Wait(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPrague, err)
		}
		rates, err := parseSummary(s.Output())
		if err != nil {
			return nil, err
		}
		flows = append(flows, rates)
	}
	return together(flows), nil
}

// Stop ends senders and receiver. Their exit status after SIGTERM is not a failure.
func (p *Pragues) Stop() {
	for _, s := range p.senders {
		_ = s.Stop()
	}
	_ = p.receiver.Stop()
}

// maxSeconds bounds the times in a summary: a day.
const maxSeconds = 24 * 3600

// parseSummary parses the summary of a sender. The error wraps ErrPrague.
func parseSummary(text []byte) ([]Rate, error) {
	if len(text) > maxOutput {
		return nil, fmt.Errorf("%w: printed %d bytes, expected at most %d", ErrPrague, len(text), maxOutput)
	}
	var summary Summary
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&summary); err != nil {
		return nil, fmt.Errorf("%w: expected one JSON object: %w", ErrPrague, err)
	}
	var rates []Rate
	from := 0.0
	for _, s := range summary.Samples {
		if !(s.Seconds > from && s.Seconds <= maxSeconds) {
			return nil, fmt.Errorf("%w: a sample until %g s, expected more than %g and at most a day", ErrPrague,
				s.Seconds, from)
		}
		rates = append(rates, Rate{from, s.Seconds, 1e6 * s.Mbps})
		from = s.Seconds
	}
	if len(rates) == 0 {
		return nil, fmt.Errorf("%w: no sample of the rate", ErrPrague)
	}
	return rates, nil
}

// together returns the rate of several flows, second by second.
func together(flows [][]Rate) (sum []Rate) {
	end := 0.0
	for _, rates := range flows {
		end = max(end, rates[len(rates)-1].Until)
	}
	for from := 0.0; from < end; from++ {
		r := Rate{From: from, Until: min(from+1, end)}
		for _, rates := range flows {
			r.BPS += MeanRate(rates, r.From, r.Until)
		}
		sum = append(sum, r)
	}
	return sum
}
