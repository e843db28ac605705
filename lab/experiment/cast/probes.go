package cast

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/probe"
)

// Probes are packets of package probe from one host to another.
type Probes struct {
	From, To string
	// Size is the size of the IP packets, Count their number, Interval the time between two packets.
	Size, Count int
	Interval    time.Duration
}

// ErrProbes reports a failure of the probe programs.
var ErrProbes = errors.New("probe packets")

// ready matches the line with a receiver's address.
var ready = regexp.MustCompile(`\{"ready":"([^"]+)"\}`)

// starting is the time limit for a receiver to listen.
const starting = 10 * time.Second

// Exchange sends probes. The times are by the clock of this machine, except for those of network cards.
func (c *Cast) Exchange(ctx context.Context, p Probes) ([]probe.Departure, []probe.Arrival, error) {
	said := make(sign, 1)
	receiver, err := c.Start(ctx, p.To, "vollab probe receive", "vollab", said, "probe", "receive", "--listen",
		c.Listen(p.To), "--count", strconv.Itoa(p.Count))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = receiver.Stop() }()
	address, err := lab.AwaitSign(ctx, receiver, said, starting)
	if err != nil {
		return nil, nil, errors.Join(ErrProbes, err)
	}
	sender, err := c.Start(ctx, p.From, "vollab probe send", "vollab", nil, "probe", "send", "--to", address,
		"--size", strconv.Itoa(p.Size), "--count", strconv.Itoa(p.Count), "--interval", p.Interval.String())
	if err != nil {
		return nil, nil, err
	}
	if err := sender.Wait(ctx); err != nil {
		return nil, nil, errors.Join(err, sender.Stop())
	}
	if err := receiver.Wait(ctx); err != nil {
		return nil, nil, err
	}
	departures, err := parseLines[probe.Departure](sender.Output())
	if err != nil {
		return nil, nil, err
	}
	arrivals, err := parseLines[probe.Arrival](receiver.Output())
	if err != nil {
		return nil, nil, err
	}
	for i := range departures {
		d := &departures[i]
		if err := c.Convert(p.From, &d.Sent, &d.Software); err != nil {
			return nil, nil, err
		}
	}
	for i := range arrivals {
		a := &arrivals[i]
		if err := c.Convert(p.To, &a.Received, &a.Software); err != nil {
			return nil, nil, err
		}
	}
	return departures, arrivals, nil
}

// sign passes on the address printed by a receiver, and drops the rest.
type sign chan string

// Write implements io.Writer. The receiver writes the line in one call.
func (s sign) Write(data []byte) (int, error) {
	if match := ready.FindSubmatch(data); match != nil {
		select {
		case s <- string(match[1]):
		default:
		}
	}
	return len(data), nil
}

// parseLines parses consecutive JSON objects.
func parseLines[T any](text []byte) (list []T, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var value T
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, fmt.Errorf("%w: line %d: %w", ErrProbes, len(list)+1, err)
		}
		list = append(list, value)
	}
}
