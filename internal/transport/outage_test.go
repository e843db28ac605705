package transport

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/pion/ice/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// gate is a socket that lets nothing through while it is shut, and counts what was to be sent meanwhile.
type gate struct {
	net.PacketConn
	shut            atomic.Bool
	checks, records atomic.Int64
}

func newGate(t *testing.T) *gate {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &gate{PacketConn: conn}
}

// WriteTo implements net.PacketConn.
func (g *gate) WriteTo(b []byte, to net.Addr) (int, error) {
	if !g.shut.Load() {
		return g.PacketConn.WriteTo(b, to)
	}
	// RFC 7983 tells STUN from DTLS.
	switch {
	case b[0] < 4:
		g.checks.Add(1)
	case b[0] >= 20 && b[0] < 64:
		g.records.Add(1)
	}
	return len(b), nil
}

// ReadFrom implements net.PacketConn.
func (g *gate) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := g.PacketConn.ReadFrom(b)
		if err != nil || !g.shut.Load() {
			return n, from, err
		}
	}
}

// TestChecksGoOnWhileNothingPasses shuts the way between two peers for longer than a pair was once checked.
func TestChecksGoOnWhileNothingPasses(t *testing.T) {
	p := newPair(t)
	g := newGate(t)
	endpoint, err := Attach(ClientConfig(), g)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := endpoint.NewPeer(p.heard)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.answers.Close(), p.endpoints[1].Close()); err != nil {
		t.Fatal(err)
	}
	p.answers, p.endpoints[1] = peer, endpoint
	line, err := p.offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		t.Fatal(err)
	}
	g.shut.Store(true)
	p.negotiate([]*Line{line})
	p.until("checks of more than two seconds", func() bool { return g.checks.Load() > leastAttempts+10 })
	g.shut.Store(false)
	p.connect()
}

// TestFailingIsToldEachTimeThatICEBeganAnew, since whoever hears of it has ICE begin once more.
func TestFailingIsToldEachTimeThatICEBeganAnew(t *testing.T) {
	l := newEventList()
	l.secured()
	for _, state := range []ice.ConnectionState{
		ice.ConnectionStateChecking, ice.ConnectionStateConnected, ice.ConnectionStateDisconnected,
		ice.ConnectionStateFailed,
		ice.ConnectionStateChecking, ice.ConnectionStateFailed, ice.ConnectionStateChecking,
		ice.ConnectionStateConnected, ice.ConnectionStateChecking,
		ice.ConnectionStateConnected,
	} {
		l.iceState(state)
	}
	want := []State{StateConnected, StateDisconnected, StateFailed, StateFailed, StateConnected}
	got := l.take()
	if len(got) != len(want) {
		t.Fatalf("told %v, expected %v", got, want)
	}
	for i, event := range got {
		if event.State != want[i] {
			t.Errorf("event %d is %v, expected %v", i, event.State, want[i])
		}
	}
}

// TestChannelsGoOnSoonAfterAnOutage sends on a channel while nothing passes. SCTP repeats it after a quarter of a
// second, and then once per second: were each wait twice the one before, the seventh sending would be half a minute
// after the first, and so late would be the first that finds the way open again.
func TestChannelsGoOnSoonAfterAnOutage(t *testing.T) {
	g := newGate(t)
	c := newChannelled(t, g)
	before := c.arrived.Load()
	g.shut.Store(true)
	if err := c.channel.Send([]byte("meanwhile")); err != nil {
		t.Fatal(err)
	}
	c.until("the message is repeated", func() bool {
		// After some seconds the endpoint sends no more records, until the foreign peer answers checks again.
		return g.records.Load()+int64(c.peer.endpoint.Limits().Unconsented) >= 7
	})
	g.shut.Store(false)
	c.until("the message arrives", func() bool { return c.arrived.Load() > before })
}
