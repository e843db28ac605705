package transport

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/description"
)

// TestNamedAddressesAreCheckedByTheMux names an address that never sends anything, in every answer and again. It receives
// the checks that it may, all of them valid, and the ICE agent hears of no candidate.
func TestNamedAddressesAreCheckedByTheMux(t *testing.T) {
	bystander, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Close() }()
	config := DefaultConfig()
	config.Address, config.Port, config.TCP = "127.0.0.1", 0, false
	p := newLone(t, config)
	// Loopback is forbidden otherwise.
	p.endpoint.mux.permits = everywhere
	answer := answerTo(t, offerLines(t, p))
	port := bystander.LocalAddr().(*net.UDPAddr).Port
	for n := range 3 {
		named := answer + fmt.Sprintf("a=candidate:%d 1 udp %d 127.0.0.1 %d typ host\r\n", n+1, n+1, port)
		if _, err := p.Answered(named); err != nil {
			t.Fatal(err)
		}
		p.offer = p.offerAgain(t)
	}
	now := time.Now()
	for step := range 600 {
		p.endpoint.mux.checkNamed(now.Add(time.Duration(step) * 100 * time.Millisecond))
	}
	if candidates, err := p.agent.GetRemoteCandidates(); err != nil || len(candidates) > 0 {
		t.Errorf("the ICE agent has %d remote candidates, %v", len(candidates), err)
	}
	ufrag, _, err := p.agent.GetLocalUserCredentials()
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 2048)
	for n := range namedAttempts {
		if err := bystander.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		size, _, err := bystander.ReadFrom(buffer)
		if err != nil {
			t.Fatalf("after %d of %d checks: %v", n, namedAttempts, err)
		}
		var check stun.Message
		if err := stun.Decode(buffer[:size], &check); err != nil {
			t.Fatal(err)
		}
		var user stun.Username
		if err := user.GetFrom(&check); err != nil || user.String() != p.agent.remote.Ufrag+":"+ufrag {
			t.Errorf("check %d is for %q, %v; expected %q", n, user.String(), err, p.agent.remote.Ufrag+":"+ufrag)
		}
		if err := stun.MessageIntegrity([]byte(p.agent.remote.Password)).Check(&check); err != nil {
			t.Errorf("check %d: %v", n, err)
		}
	}
	if err := bystander.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bystander.ReadFrom(buffer); err == nil {
		t.Errorf("more than %d checks came", namedAttempts)
	}
}

// offerAgain offers what was offered before.
func (p *Peer) offerAgain(t *testing.T) *description.Description {
	t.Helper()
	if _, err := p.Offer(false); err != nil {
		t.Fatal(err)
	}
	return p.offer
}
