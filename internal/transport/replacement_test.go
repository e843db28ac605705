package transport

import (
	"net/netip"
	"testing"

	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestPortsAreReplacedWhilePeersBeginAndEnd replaces the ports of a client before a peer gathers its candidates, before
// it restarts ICE, and after it was closed. Each generation of ICE uses the present ports, and the ports forget closed
// peers.
func TestPortsAreReplacedWhilePeersBeginAndEnd(t *testing.T) {
	loopback := hostNetwork{
		find: func(string, bool) (hostnet.Interface, error) {
			return hostnet.Interface{Address: netip.MustParseAddr("127.0.0.1")}, nil
		},
		listen: func(config udp.Config) (*udp.Port, error) {
			config.Device = ""
			return udp.Listen(config)
		},
	}
	config := loopbackConfig()
	config.Interfaces = []string{"first", "second"}
	endpoint, err := listenEach(config, loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = endpoint.Close() }()
	replace := func(number int) {
		t.Helper()
		port, _, err := endpoint.interfaces.open(config.Interfaces[number])
		if err != nil {
			t.Fatal(err)
		}
		endpoint.interfaces.replace(number, port)
	}
	peer, err := endpoint.NewPeer(NoOpSink{})
	if err != nil {
		t.Fatal(err)
	}
	peer.UseAllPairs()
	if _, err := peer.AddSending(volumetric.KindVideo, "slot"); err != nil {
		t.Fatal(err)
	}
	var ufrag string
	known := func(want bool) {
		t.Helper()
		for number, port := range endpoint.mediaPorts() {
			if port.mux.Knows(ufrag) != want {
				t.Errorf("port %d knows the peer: %t, expected %t", number, !want, want)
			}
		}
	}
	for _, restart := range []bool{false, true} {
		replace(0)
		if _, err := peer.Offer(restart); err != nil {
			t.Fatal(err)
		}
		if ufrag, _, err = peer.agent.GetLocalUserCredentials(); err != nil {
			t.Fatal(err)
		}
		known(true)
		replace(1)
		known(true)
	}
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	known(false)
	// A replacement may have begun before the peer was closed.
	endpoint.interfaces.add(peer)
	replace(0)
	known(false)
}
