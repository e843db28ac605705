package hardening

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/intruder"
	"github.com/volsfu/volsfu/test/testbed"
)

// unharmed returns the lines of the claim that no session is disturbed.
func (o *outcome) unharmed(prefix string) []claim.Line {
	return append([]claim.Line{
		o.survival(prefix),
		claim.Exactly(prefix+"sessions resumed", int64(o.resumed), "", 0),
		claim.Exactly(prefix+"offers to the innocents", o.offers, "", 0),
	}, o.whole(prefix)...)
}

// forgeries is the number of times that each forged record is sent, at intervals of forgeryInterval.
const (
	forgeries       = 10
	forgeryInterval = time.Second
)

// attackAlerts sends unprotected records with the source addresses of the innocents.
func attackAlerts(ctx context.Context, c *check) ([]claim.Line, error) {
	var lines []claim.Line
	for _, way := range []struct {
		name   string
		record func(uint16) []byte
	}{
		{"alerts: ", func(uint16) []byte { return intruder.CloseNotify() }},
		{"application data: ", func(n uint16) []byte {
			return intruder.Record(intruder.ApplicationData, 0xffff0000+uint64(n), []byte("hello"))
		}},
	} {
		o, err := c.once(ctx, forgeryInterval, func(ctx context.Context, s *stage) error {
			for range forgeries {
				if err := s.spoofEach(ctx, 1, way.record); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return lines, err
		}
		lines = append(lines, o.unharmed(way.name)...)
	}
	return lines, nil
}

const (
	// hijackDelay is the additional delay of the innocents' path, in each direction.
	hijackDelay = 30 * time.Millisecond
	// hijackTime is the time for which the intruder's candidates are checked, longer than ICE's time limit for a
	// failing connection.
	hijackTime = 25 * time.Second
)

// attackHijack names the innocents' addresses as candidates of the intruder.
func attackHijack(ctx context.Context, c *check) ([]claim.Line, error) {
	s, err := newStage(ctx, c, stageOptions{delay: hijackDelay})
	if err != nil {
		return nil, err
	}
	defer s.close()
	o, err := s.measure(ctx, c.options.atMost(hijackTime), func(ctx context.Context) error {
		i, err := s.nameCandidates(ctx, s.addresses)
		if err != nil {
			return err
		}
		defer i.Close()
		return lab.Pause(ctx, c.options.atMost(hijackTime))
	})
	if err != nil {
		return nil, err
	}
	return o.unharmed(""), nil
}

const (
	// joiners is the number of websockets on which joins are refused; joinTime is the duration.
	joiners  = 4
	joinTime = 15 * time.Second
	// mostLines is the largest number of log lines per second for one address; mostJoinShare is the server's largest
	// processor time, in percent.
	mostLines     = 5
	mostJoinShare = 5
)

// refusedJoin has one publication more than a participant may have.
func refusedJoin(number int64) *signal.Join {
	join := &signal.Join{Version: signal.Version, Room: fmt.Sprintf("refused %d", number), Identity: "mallory"}
	for n := range 9 {
		p := testbed.Load{Name: fmt.Sprintf("body %d", n), Tiles: 1, Qualities: 1, FrameBytes: 1000,
			Rate: 30}.Publication()
		join.Publications = append(join.Publications, p)
	}
	return join
}

// refuse sends joins on one websocket after the other for a time, each as soon as the previous one is refused.
func (s *stage) refuse(ctx context.Context, lasting time.Duration, refused, opened *atomic.Int64) error {
	began := time.Now()
	config := s.intruder()
	for time.Since(began) < lasting && ctx.Err() == nil && !s.server.dead() {
		ws, err := config.OpenWebsocket(ctx)
		if err != nil {
			// The server refuses websockets of an address that has opened too many.
			if err := lab.Pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		opened.Add(1)
		for time.Since(began) < lasting {
			data, err := signal.Encode(refusedJoin(intruder.Number()))
			if err != nil {
				return errors.Join(err, ws.Close())
			}
			if ws.WriteMessage(websocket.TextMessage, data) != nil {
				break
			}
			_ = ws.SetReadDeadline(time.Now().Add(joinPatience))
			_, reply, err := ws.ReadMessage()
			if err != nil {
				break
			}
			if m, err := signal.DecodeFromServer(reply); err == nil {
				if _, is := m.(*signal.Error); is {
					refused.Add(1)
				}
			}
		}
		_ = ws.Close()
	}
	return ctx.Err()
}

// attackJoins sends joins that are refused, as fast as possible.
func attackJoins(ctx context.Context, c *check) ([]claim.Line, error) {
	var refused, opened, logged, bytes atomic.Int64
	o, err := c.once(ctx, c.options.brief(), func(ctx context.Context, s *stage) error {
		logged.Store(-s.server.log.lines.Load())
		bytes.Store(-s.server.log.bytes.Load())
		err := s.refuseAll(ctx, c.options.atMost(joinTime), &refused, &opened)
		logged.Add(s.server.log.lines.Load())
		bytes.Add(s.server.log.bytes.Load())
		return err
	})
	if err != nil {
		return nil, err
	}
	seconds := c.options.atMost(joinTime).Seconds()
	return append([]claim.Line{
		o.survival(""),
		claim.Stated("joins refused", float64(refused.Load())/seconds, "/s"),
		claim.Stated("websockets opened", float64(opened.Load())/seconds, "/s"),
		claim.AtMost("lines logged for one address", float64(logged.Load())/seconds, "/s", mostLines),
		claim.Stated("bytes logged", float64(bytes.Load())/seconds, "/s"),
		claim.AtMost(beyondQuiet, o.beyondQuiet(), share, mostJoinShare),
	}, o.whole("")...), nil
}

// refuseAll runs refuse over several websockets at once.
func (s *stage) refuseAll(ctx context.Context, lasting time.Duration, refused, opened *atomic.Int64) error {
	return together(joiners, func() error { return s.refuse(ctx, lasting, refused, opened) })
}

// together runs a function in several goroutines at once, and returns all errors.
func together(count int, f func() error) error {
	failed := make(chan error, count)
	for range count {
		go func() { failed <- f() }()
	}
	var all error
	for range count {
		all = errors.Join(all, <-failed)
	}
	return all
}
