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
	// combinedRate is the rate of each flood of the combined attack, in datagrams per second. At full speed the floods
	// would leave no processor of this machine to the server and the innocents.
	combinedRate = 10_000
	// combinedTurn is the length of each part of the combined attack before the part begins again.
	combinedTurn = 10 * time.Second
	// newcomers is the number of participants who join during the attack, at intervals of newcomerInterval.
	newcomers        = 8
	newcomerInterval = 3 * time.Second
	// mostJoining is the time limit for a join from the websocket to media, in seconds.
	mostJoining = 1
)

// part is one of the attacks that run at once. run attacks once and returns the count of its effects; counted names
// them.
type part struct {
	counted string
	run     func(context.Context) (int64, error)
	total   atomic.Int64
}

// attackEverything runs, at once, all attacks that one token and one address allow.
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
	// One attack uses up the rooms of the token. The participants of the other attacks join a room that stays open.
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
	o, err := s.measure(ctx, c.options.After, func(ctx context.Context) error {
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
		o.survival(""),
		claim.Exactly("joins that failed", failedJoins, "", 0),
		claim.Stated("joins meanwhile", float64(len(joining)), ""),
		claim.AtMost("from websocket to media, slowest join", worst.Seconds(), "s", mostJoining),
	}
	for _, a := range parts {
		// An attack that did not happen proves nothing.
		lines = append(lines, claim.AtLeast("attack: "+a.counted, float64(a.total.Load()), "", 1))
	}
	return append(append(lines, o.whole("")...), o.bounded("")...), nil
}

// launch runs the parts until stop is called. A part that ends is started again.
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

// everything returns the attacks that run at once.
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
	// tcpRate is the number of ICE-TCP connections opened per second, five times the server's limit for one address.
	// tcpTurn is the time for which the connections use one participant: the server accepts 64 connections for one
	// participant.
	tcpRate = 1000
	tcpTurn = 2 * time.Second
	// tcpKept is the number of connections that stay open, more than the server's limit for one address.
	tcpKept = 300
	// tcpChecks is the number of checks on one connection, twice the number that the server accepts at once.
	tcpChecks = 512
	// tcpPatience bounds the time to write the checks of one connection.
	tcpPatience = 50 * time.Millisecond
)

// connectTCP opens ICE-TCP connections and keeps them open. Half of them are silent, half send valid checks.
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
		// A reset connection does not leave a port of the attacker in TIME_WAIT.
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
	// fillers is the number of concurrent joiners. fillSockets is the number of websockets that each joiner keeps open:
	// the server's limit for one address minus the websockets of the other attacks. The server keeps places of closed
	// websockets for a resume.
	fillers     = 4
	fillSockets = 60
	// fillRooms is the number of rooms over which the places are spread, more than one token may open.
	fillRooms = 110
)

// fill takes places in as many rooms as one token may open, and in one of these rooms as many places as the token may
// have.
func (s *stage) fill(ctx context.Context) (int64, error) {
	var taken, tried atomic.Int64
	err := together(fillers, func() error { return s.fillRooms(ctx, &tried, &taken) })
	return taken.Load(), err
}

// fillRooms joins for a turn. The oldest websockets are closed without a leave message.
func (s *stage) fillRooms(ctx context.Context, tried, taken *atomic.Int64) error {
	var open []*intruder.Intruder
	defer func() {
		for _, i := range open {
			i.Drop()
		}
	}()
	for began := time.Now(); time.Since(began) < combinedTurn && ctx.Err() == nil; {
		// Every second join is to the first room.
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
