package transport

import (
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/internal/description"
)

// TestNamedAddressesAreForTheMux names an address that never sends anything, in every answer and again. The ICE agent
// receives no candidate: the mux checks the address (icemux.TestNamedAddressesAreChecked).
func TestNamedAddressesAreForTheMux(t *testing.T) {
	config := DefaultConfig()
	config.Address, config.Port, config.TCP = "127.0.0.1", 0, false
	p := newLone(t, config)
	answer := answerTo(t, offerLines(t, p))
	for n := range 3 {
		named := answer + fmt.Sprintf("a=candidate:%d 1 udp %d 127.0.0.1 9 typ host\r\n", n+1, n+1)
		if _, err := p.Answered(named); err != nil {
			t.Fatal(err)
		}
		p.offer = offerAgain(t, p)
	}
	if candidates, err := p.agent.GetRemoteCandidates(); err != nil || len(candidates) > 0 {
		t.Errorf("the ICE agent has %d remote candidates, %v", len(candidates), err)
	}
}

// offerAgain repeats the last offer of a peer.
func offerAgain(t *testing.T, p *Peer) *description.Description {
	t.Helper()
	if _, err := p.Offer(false); err != nil {
		t.Fatal(err)
	}
	return p.offer
}
