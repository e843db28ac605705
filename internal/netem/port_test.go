package netem_test

import (
	"testing"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/udp"
)

// TestPortsCarryCodepoints sends from port to port: package udp finds the methods of a Conn for codepoints.
func TestPortsCarryCodepoints(t *testing.T) {
	n := newNetwork(t, 1)
	var ports [2]*udp.Port
	for i, address := range []string{"10.0.0.1:1", "10.0.0.2:1"} {
		port, err := udp.Attach(listen(t, n, address))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = port.Close() })
		ports[i] = port
	}
	in := udp.NewInbox()
	var counts udp.CodepointCounts
	for _, codepoint := range []ecn.Codepoint{ecn.CE, ecn.NotECT, ecn.ECT0, ecn.ECT1, ecn.ECT1} {
		message := udp.Message{Peer: ports[1].Address(), Data: make([]byte, 250), Segment: 100, ECN: codepoint}
		if err := ports[0].Sockets()[0].Send([]udp.Message{message}); err != nil {
			t.Fatal(err)
		}
		counts[codepoint] += 3
		for range 3 {
			if err := ports[1].Sockets()[0].Receive(in); err != nil {
				t.Fatal(err)
			}
			for _, m := range in.Messages() {
				if m.ECN != codepoint {
					t.Errorf("a datagram arrived as %v, expected %v", m.ECN, codepoint)
				}
			}
		}
	}
	if sent, received := ports[0].Stats(), ports[1].Stats(); sent.SentECN != counts || received.ReceivedECN != counts {
		t.Errorf("%v sent and %v received by codepoint, expected %v", sent.SentECN, received.ReceivedECN, counts)
	}
}
