package transport

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// hostCandidate returns one of many candidates on a documentation network (RFC 5737).
func hostCandidate(port int) string {
	return fmt.Sprintf("candidate:1 1 udp 1 192.0.2.1 %d typ host", port)
}

// TestCandidatesAreLimitedUntilICEBeginsAnew renegotiates with a peer that has sent as many candidates as it may.
func TestCandidatesAreLimitedUntilICEBeginsAnew(t *testing.T) {
	p := newPair(t)
	if _, err := p.offers.AddReceiving(volumetric.KindVideo); err != nil {
		t.Fatal(err)
	}
	for _, round := range []struct {
		name           string
		restart, taken bool
	}{
		{"the first offer", false, true},
		{"another offer", false, false},
		{"an ICE restart", true, true},
	} {
		p.restart = round.restart
		p.negotiate(nil)
		for port := 1; round.taken && port <= description.MaxCandidates; port++ {
			if err := p.offers.AddCandidate(Candidate{Candidate: hostCandidate(port), MID: "0"}); err != nil {
				t.Fatalf("candidate %d after %s: %v", port, round.name, err)
			}
		}
		if err := p.offers.AddCandidate(Candidate{Candidate: hostCandidate(description.MaxCandidates + 1),
			MID: "0"}); !errors.Is(err, ErrCandidate) {
			t.Errorf("a candidate too many after %s: got %v, want ErrCandidate", round.name, err)
		}
	}
}

func TestStreamsWithoutEndCloseTheConnection(t *testing.T) {
	p := newPair(t)
	line, err := p.offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate([]*Line{line})
	p.connect()
	outlet := p.attachBeforeSend[line.MID()]
	media, _, _ := outlet.PayloadType(volumetric.MIMEVolumetric)
	closed := false
	ssrc := uint32(0)
	p.until("the connection is closed", func() bool {
		// Some are lost on the way. An error means that the connection is closed.
		for range 1000 {
			ssrc++
			_ = outlet.WriteRTP(&rtp.Header{Version: 2, PayloadType: media, SSRC: ssrc}, []byte("x"))
		}
		for _, event := range p.offers.Events() {
			closed = closed || event.State == StateClosed
		}
		return closed
	})
}

// TestNoConnectionsToWhereCandidatesPoint: a remote candidate names a TCP port that does not belong to the remote peer.
func TestNoConnectionsToWhereCandidatesPoint(t *testing.T) {
	victim, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Close() }()
	accepted := make(chan struct{}, 1)
	go func() {
		if conn, err := victim.Accept(); err == nil {
			_ = conn.Close()
			accepted <- struct{}{}
		}
	}()
	p := newPair(t)
	line, err := p.offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate([]*Line{line})
	port := victim.Addr().(*net.TCPAddr).Port
	lure := Candidate{Candidate: fmt.Sprintf("candidate:1 1 tcp 1 127.0.0.1 %d typ host tcptype passive", port),
		MID: line.MID()}
	if err := p.offers.AddCandidate(lure); err != nil {
		t.Fatal(err)
	}
	p.connect()
	// When packets flow, the loop of the ICE agent has processed all earlier calls.
	number := uint16(0)
	p.until("a packet", func() bool {
		number++
		send(t, p.attachBeforeSend[line.MID()], volumetric.MIMEVolumetric, number)
		return len(p.offersTo.packets(p.attachBeforeSend[line.MID()].SSRC())) > 0
	})
	select {
	case <-accepted:
		t.Error("connected to where the candidate pointed")
	case <-time.After(100 * time.Millisecond):
	}
}

func TestMediaOverTCPOnly(t *testing.T) {
	p := newPair(t)
	config := ClientConfig()
	endpoint, err := Dial(config)
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
	p.negotiate([]*Line{line})
	p.connect()
	outlet := p.attachBeforeSend[line.MID()]
	send(t, outlet, volumetric.MIMEVolumetric, 1)
	p.until("a packet over TCP", func() bool { return len(p.offersTo.packets(outlet.SSRC())) == 1 })
	selected, err := peer.agent.GetSelectedCandidatePair()
	if err != nil {
		t.Fatal(err)
	}
	if !selected.Remote.NetworkType().IsTCP() || selected.Remote.Port() != int(p.endpoints[0].Port()) {
		t.Errorf("connected to %v, expected TCP port %d", selected.Remote, p.endpoints[0].Port())
	}
}
