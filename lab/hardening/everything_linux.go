package hardening

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/intruder"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// combinedRate is that of each flood of the combined attack, in datagrams per second: all of them at full speed
	// would leave the server and the innocents no processor of this machine.
	combinedRate = 10_000
	// combinedTurn is how long each part of the combined attack lasts before the part begins again.
	combinedTurn = 10 * time.Second
	// newcomers is how many participants join meanwhile, at intervals of newcomerInterval.
	newcomers        = 8
	newcomerInterval = 3 * time.Second
	// mostJoining is how long a join may take from the websocket to media, in seconds.
	mostJoining = 1
)

// part is one of the attacks that run at once. run attacks once and returns how many of what is counted came about.
type part struct {
	counted string
	run     func(context.Context) (int64, error)
	total   atomic.Int64
}

// attackEverything runs all attacks that one token and one address allow at once.
func attackEverything(ctx context.Context, c *check) ([]claim.Line, error) {
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
	// One attack uses up the rooms of the token. The others have a room that stays open.
	s.room = "attackers"
	keeper, p, err := s.reachData(ctx)
	if err != nil {
		return nil, err
	}
	defer keeper.Close()
	defer p.End()
	conn, err := p.Handshake(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	parts := s.everything(bystander)
	var joining []time.Duration
	var failedJoins int64
	o, err := s.under(ctx, c.options.After, func(ctx context.Context) error {
		stop := s.launch(ctx, parts)
		defer stop()
		for n := range newcomers {
			if err := lab.Pause(ctx, newcomerInterval); err != nil {
				break
			}
			p, err := s.attend(ctx, newcomer, testbed.Part{Identity: fmt.Sprintf("dave %d", n), Receive: true}, 0)
			if err != nil {
				failedJoins++
				continue
			}
			joining = append(joining, p.ConnectedAt().Sub(p.Opened))
			p.Leave()
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	worst := time.Duration(0)
	for _, d := range joining {
		worst = max(worst, d)
	}
	lines := []claim.Line{
		o.lives(""),
		claim.Exactly("joins that failed", failedJoins, "", 0),
		claim.Stated("joins meanwhile", float64(len(joining)), ""),
		claim.AtMost("from websocket to media, slowest join", worst.Seconds(), "s", mostJoining),
	}
	for _, a := range parts {
		// An attack that did not take place proves nothing.
		lines = append(lines, claim.AtLeast("attack: "+a.counted, float64(a.total.Load()), "", 1))
	}
	return append(append(lines, o.whole("")...), o.bounded("")...), nil
}

// launch runs the parts, each of which is begun again when it ends, until the returned function is called.
func (s *stage) launch(ctx context.Context, parts []*part) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, a := range parts {
		running.Go(func() {
			for ctx.Err() == nil && !s.server.dead() {
				count, err := a.run(ctx)
				a.total.Add(count)
				if err != nil {
					_ = lab.Pause(ctx, comeAgain)
				}
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// everything are the attacks that run at once.
func (s *stage) everything(bystander *namespace) []*part {
	var strangers []netip.AddrPort
	for n := range candidatesPerAnswer {
		strangers = append(strangers, netip.AddrPortFrom(unused(1, 1+n), candidatePort))
	}
	named := func(candidates []netip.AddrPort) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) {
			i, err := s.nameCandidates(ctx, candidates)
			if err != nil {
				return 0, err
			}
			defer i.Close()
			return 1, lab.Pause(ctx, combinedTurn)
		}
	}
	replay := func(ctx context.Context) (int64, error) {
		sent, err := s.replay(ctx, combinedTurn, combinedRate, 0)
		return sent.packets, err
	}
	messages := func(ctx context.Context) (int64, error) {
		sent, err := s.messages(ctx, combinedTurn, combinedRate)
		return sent.packets, err
	}
	sctp := func(rate int, kind intruder.Packets) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) {
			sent, err := s.overSCTP(ctx, combinedTurn, rate, kind)
			return sent.packets, err
		}
	}
	refuse := func(ctx context.Context) (int64, error) {
		var refused, opened atomic.Int64
		err := s.refuseAll(ctx, combinedTurn, &refused, &opened)
		return refused.Load(), err
	}
	return []*part{
		{counted: "STUN requests replayed", run: replay},
		{counted: "handshake messages", run: messages},
		{counted: "SCTP packets of empty fragments", run: sctp(100, intruder.EmptyFragments)},
		{counted: "SCTP packets that open channels", run: sctp(100, intruder.OpenedChannels)},
		{counted: "SCTP packets of HEARTBEATs", run: sctp(combinedRate, intruder.Heartbeats)},
		{counted: "answers with unused addresses", run: named(strangers)},
		{counted: "answers with a bystander's address", run: named(portsOf(bystander, 0))},
		{counted: "answers with the innocents' addresses", run: named(s.addresses[:2])},
		{counted: "joins refused", run: refuse},
		{counted: "ICE-TCP connections", run: s.connectTCP},
		{counted: "places taken in rooms", run: s.fill},
	}
}

const (
	// tcpRate is how many ICE-TCP connections are opened per second, five times as many as the server takes of one
	// address. tcpTurn is how long one participant serves: the server takes 64 connections for one.
	tcpRate = 1000
	tcpTurn = 2 * time.Second
	// tcpKept is how many connections stay open: more than the server takes of one address.
	tcpKept = 300
	// tcpChecks is how many checks one connection brings: twice as many as the server takes at once.
	tcpChecks = 512
	// tcpPatience bounds how long the server may take the checks of one connection.
	tcpPatience = 50 * time.Millisecond
)

// connectTCP opens ICE-TCP connections and keeps them. Half of them say nothing, half bring valid checks.
func (s *stage) connectTCP(ctx context.Context) (opened int64, err error) {
	i, err := s.nameCandidates(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer i.Close()
	checks := bytes.Repeat(intruder.Framed(i.Request()), tcpChecks)
	var kept []net.Conn
	defer func() {
		for _, conn := range kept {
			_ = conn.Close()
		}
	}()
	began := time.Now()
	for tried := 0; time.Since(began) < tcpTurn && ctx.Err() == nil; tried++ {
		due := began.Add(time.Duration(tried) * time.Second / tcpRate)
		if err := lab.Pause(ctx, time.Until(due)); err != nil {
			return opened, err
		}
		conn, err := s.attacker.dial(ctx, "tcp4", s.server.media().String())
		if err != nil {
			continue
		}
		opened++
		// A connection that is reset keeps no port of the attacker's waiting.
		_ = conn.(*net.TCPConn).SetLinger(0)
		if tried%2 == 0 {
			_ = conn.SetWriteDeadline(time.Now().Add(tcpPatience))
			_, _ = conn.Write(checks)
		}
		if kept = append(kept, conn); len(kept) > tcpKept {
			_ = kept[0].Close()
			kept = kept[1:]
		}
	}
	return opened, ctx.Err()
}

const (
	// fillers is how many joins are under way at once, fillSockets how many websockets each keeps open: as many as the
	// server lets one address have, less those of the other attacks. Places of older ones are kept for their return.
	fillers     = 4
	fillSockets = 60
	// fillRooms is over how many rooms the places are spread: more than one token may open.
	fillRooms = 110
)

// fill takes places in as many rooms as one token may open, and as many in one of the rooms as the token may have.
func (s *stage) fill(ctx context.Context) (int64, error) {
	var taken, tried atomic.Int64
	err := together(fillers, func() error { return s.fillRooms(ctx, &tried, &taken) })
	return taken.Load(), err
}

// fillRooms joins for a turn. It ends the oldest of its websockets without a leave.
func (s *stage) fillRooms(ctx context.Context, tried, taken *atomic.Int64) error {
	var open []*intruder.Intruder
	defer func() {
		for _, i := range open {
			i.Drop()
		}
	}()
	for began := time.Now(); time.Since(began) < combinedTurn && ctx.Err() == nil; {
		// Every other one joins the first room.
		n := tried.Add(1)
		room := fmt.Sprintf("full %d", n%2*(n/2%fillRooms))
		i, err := intruder.Join(ctx, s.intruder(), signal.Join{Receive: true, Room: room})
		if errors.Is(err, intruder.ErrRefused) {
			continue
		}
		if err != nil {
			// The server refuses websockets of an address that has opened too many.
			if err := lab.Pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		taken.Add(1)
		if open = append(open, i); len(open) > fillSockets {
			open[0].Drop()
			open = open[1:]
		}
	}
	return ctx.Err()
}
