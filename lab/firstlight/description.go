package firstlight

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
)

// publishShare is the divisor of the number of lines on which the client sends: 30 of 300 lines belong to a participant
// of 15 tiles × 2 qualities who receives 270 tiles.
const publishShare = 10

// measureDescription negotiates the given number of lines once between a server's and a client's peer connection, and
// reports sizes and times.
func measureDescription(lines int) ([]claim.Line, error) {
	config := transport.DefaultConfig()
	config.Address, config.Port, config.TCP = "127.0.0.1", 0, false
	endpoint, err := transport.Listen(config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = endpoint.Close() }()
	server, err := endpoint.NewPeer(transport.NoOpSink{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Close() }()
	client, err := endpoint.NewPeer(transport.NoOpSink{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	publishing, err := addLines(server, lines)
	if err != nil {
		return nil, err
	}
	var steps stopwatch
	steps.start()
	offer, err := server.Offer(false)
	if err != nil {
		return nil, err
	}
	steps.lap("the server creates the offer")
	if _, err := client.Offered(offer); err != nil {
		return nil, err
	}
	for _, l := range publishing {
		if _, err := client.Sending(l.MID()); err != nil {
			return nil, err
		}
	}
	steps.lap("the client applies the offer")
	answer, err := client.Answer()
	if err != nil {
		return nil, err
	}
	steps.lap("the client creates the answer")
	if _, err := server.Answered(answer); err != nil {
		return nil, err
	}
	steps.lap("the server applies the answer")
	name := func(what string) string { return fmt.Sprintf("description of %d lines: %s", lines, what) }
	found := []claim.Line{
		claim.Information(name("offer"), float64(len(offer))/1000, "kB"),
		claim.Information(name("answer"), float64(len(answer))/1000, "kB"),
	}
	for _, s := range steps.laps {
		found = append(found, claim.Information(name(s.what), lab.Milliseconds(s.took), "ms"))
	}
	return append(found, claim.Information(name("all steps"), lab.Milliseconds(steps.total()), "ms")), nil
}

// addLines adds the lines to a server's peer connection and returns the lines on which the client sends.
func addLines(server *transport.Peer, lines int) ([]*transport.Line, error) {
	var publishing []*transport.Line
	for i := range lines {
		if i < lines/publishShare {
			l, err := server.AddReceiving(volumetric.KindVideo)
			if err != nil {
				return nil, err
			}
			publishing = append(publishing, l)
			continue
		}
		if _, err := server.AddSending(volumetric.KindVideo, fmt.Sprintf("slot-%d", i)); err != nil {
			return nil, err
		}
	}
	return publishing, nil
}

// stopwatch times consecutive steps.
type stopwatch struct {
	last time.Time
	laps []lap
}

type lap struct {
	what string
	took time.Duration
}

func (s *stopwatch) start() { s.last = time.Now() }

func (s *stopwatch) lap(what string) {
	now := time.Now()
	s.laps = append(s.laps, lap{what, now.Sub(s.last)})
	s.last = now
}

func (s *stopwatch) total() time.Duration {
	var sum time.Duration
	for _, l := range s.laps {
		sum += l.took
	}
	return sum
}
