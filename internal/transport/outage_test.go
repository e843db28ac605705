package transport

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/pion/ice/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// gate is a socket that drops everything while it is shut, and counts the dropped sends.
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
	// The first byte separates STUN from DTLS (RFC 7983).
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

// TestChecksGoOnWhileNothingPasses shuts the path between two peers for longer than Pion would check a pair by default.
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

// TestFailingIsToldEachTimeThatICEBeganAnew: the failure is reported after each ICE restart, because the owner restarts
// ICE after each report.
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

// TestChannelsGoOnSoonAfterAnOutage sends on a channel during an outage. SCTP repeats the packet after a quarter of a
// second, and then once per second. If each wait were twice the previous one, the seventh transmission would be half a
// minute after the first, and the first transmission after the outage would be as late.
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
