package hardening

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/hardening/intruder"
	"github.com/volsfu/volsfu/pkg/signal"
)

// unharmed are the lines of a claim that no session is disturbed.
func (o *suffered) unharmed(prefix string) []lab.Line {
	return append([]lab.Line{
		o.lives(prefix),
		lab.Exactly(prefix+"sessions resumed", int64(o.resumed), "", 0),
		lab.Exactly(prefix+"offers to the innocents", o.offers, "", 0),
	}, o.whole(prefix)...)
}

// forgeries is how often each forged record is sent, at intervals of forgeryInterval.
const (
	forgeries       = 10
	forgeryInterval = time.Second
)

// attackAlerts sends records that seem to come from the innocents. Nothing protects them.
func attackAlerts(ctx context.Context, c *check) ([]lab.Line, error) {
	var lines []lab.Line
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
	// hijackDelay is what the innocents' way takes longer, each way.
	hijackDelay = 30 * time.Millisecond
	// hijackTime is how long the intruder's candidates are checked: past the time after which ICE gives a
	// connection up.
	hijackTime = 25 * time.Second
)

// attackHijack names the innocents' addresses as candidates of the intruder.
func attackHijack(ctx context.Context, c *check) ([]lab.Line, error) {
	s, err := newStage(ctx, c, stageOptions{delay: hijackDelay})
	if err != nil {
		return nil, err
	}
	defer s.close()
	o, err := s.under(ctx, c.options.atMost(hijackTime), func(ctx context.Context) error {
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
	// joiners is over how many websockets joins are refused, joinTime for how long.
	joiners  = 4
	joinTime = 15 * time.Second
	// mostLines is how many lines a second the server may log for one address, mostJoinShare its processor time in
	// percent.
	mostLines     = 5
	mostJoinShare = 5
)

// refusedJoin has one publication more than a participant may have.
func refusedJoin(number int64) *signal.Join {
	join := &signal.Join{Version: signal.Version, Room: fmt.Sprintf("refused %d", number), Identity: "mallory"}
	for n := range 9 {
		p := lab.Load{Name: fmt.Sprintf("body %d", n), Tiles: 1, Qualities: 1, FrameBytes: 1000, Rate: 30}.Publication()
		join.Publications = append(join.Publications, p)
	}
	return join
}

// refuse sends joins on one websocket after the other until a time, each as soon as the last one is refused.
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

// attackJoins has joins refused as fast as they go.
func attackJoins(ctx context.Context, c *check) ([]lab.Line, error) {
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
	return append([]lab.Line{
		o.lives(""),
		lab.Stated("joins refused", float64(refused.Load())/seconds, "/s"),
		lab.Stated("websockets opened", float64(opened.Load())/seconds, "/s"),
		lab.AtMost("lines logged for one address", float64(logged.Load())/seconds, "/s", mostLines),
		lab.Stated("bytes logged", float64(bytes.Load())/seconds, "/s"),
		lab.AtMost(beyondQuiet, o.beyondQuiet(), share, mostJoinShare),
	}, o.whole("")...), nil
}

// refuseAll is refuse over several websockets at once.
func (s *stage) refuseAll(ctx context.Context, lasting time.Duration, refused, opened *atomic.Int64) error {
	failed := make(chan error, joiners)
	for range joiners {
		go func() { failed <- s.refuse(ctx, lasting, refused, opened) }()
	}
	var all error
	for range joiners {
		all = errors.Join(all, <-failed)
	}
	return all
}

const (
	// combinedRate is that of each flood of the combined attack, in datagrams per second: all of them at full speed
	// would leave the server and the innocents no processor of this machine.
	combinedRate = 10_000
	// newcomers is how many participants join meanwhile, at intervals of newcomerInterval.
	newcomers        = 8
	newcomerInterval = 3 * time.Second
	// mostJoining is how long a join may take from the websocket to media, in seconds.
	mostJoining = 1
)

// attackEverything runs all attacks that one token and one address allow at once.
func attackEverything(ctx context.Context, c *check) ([]lab.Line, error) {
	s, err := newStage(ctx, c, stageOptions{})
	if err != nil {
		return nil, err
	}
	defer s.close()
	bystander, err := s.network.host("bystander")
	if err != nil {
		return nil, err
	}
	newcomer, err := s.network.host("newcomer")
	if err != nil {
		return nil, err
	}
	var joining []time.Duration
	var failedJoins int64
	o, err := s.under(ctx, c.options.After, func(ctx context.Context) error {
		attacking, stop := context.WithCancel(ctx)
		defer stop()
		var running sync.WaitGroup
		for _, a := range s.everything(bystander) {
			running.Go(func() {
				for attacking.Err() == nil && !s.server.dead() {
					if a(attacking) != nil {
						_ = lab.Pause(attacking, comeAgain)
					}
				}
			})
		}
		for n := range newcomers {
			if err := lab.Pause(ctx, newcomerInterval); err != nil {
				break
			}
			p, err := s.attend(ctx, newcomer, lab.Part{Identity: fmt.Sprintf("dave %d", n), Receive: true}, 0)
			if err != nil {
				failedJoins++
				continue
			}
			joining = append(joining, p.ConnectedAt().Sub(p.Opened))
			p.Leave()
		}
		stop()
		running.Wait()
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	worst := time.Duration(0)
	for _, d := range joining {
		worst = max(worst, d)
	}
	lines := []lab.Line{
		o.lives(""),
		lab.Exactly("joins that failed", failedJoins, "", 0),
		lab.Stated("joins meanwhile", float64(len(joining)), ""),
		lab.AtMost("from websocket to media, slowest join", worst.Seconds(), "s", mostJoining),
	}
	return append(append(lines, o.whole("")...), o.bounded("")...), nil
}

// everything are the attacks that run at once, each of which is begun again when it ends.
func (s *stage) everything(bystander *namespace) []func(context.Context) error {
	const turn = 10 * time.Second
	var ignored atomic.Int64
	var strangers []netip.AddrPort
	for n := range candidatesPerAnswer {
		strangers = append(strangers, netip.AddrPortFrom(unused(1, 1+n), candidatePort))
	}
	named := func(candidates []netip.AddrPort) func(context.Context) error {
		return func(ctx context.Context) error {
			i, err := s.nameCandidates(ctx, candidates)
			if err != nil {
				return err
			}
			defer i.Close()
			return lab.Pause(ctx, turn)
		}
	}
	by := func(flood func(context.Context) (flooded, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := flood(ctx)
			return err
		}
	}
	return []func(context.Context) error{
		by(func(ctx context.Context) (flooded, error) { return s.replay(ctx, turn, combinedRate, 0) }),
		by(func(ctx context.Context) (flooded, error) { return s.messages(ctx, turn, combinedRate) }),
		by(func(ctx context.Context) (flooded, error) { return s.overSCTP(ctx, turn, 100, intruder.EmptyFragments) }),
		by(func(ctx context.Context) (flooded, error) { return s.overSCTP(ctx, turn, 100, intruder.OpenedChannels) }),
		named(strangers), named(portsOf(bystander, 0)), named(s.addresses[:2]),
		func(ctx context.Context) error { return s.refuseAll(ctx, turn, &ignored, &ignored) },
	}
}
