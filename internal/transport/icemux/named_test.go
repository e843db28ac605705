package icemux

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/test/wait"
)

// noRoutes has no routes.
type noRoutes struct{}

func (noRoutes) Socket(netip.AddrPort) *udp.Socket { return nil }
func (noRoutes) Silent(netip.AddrPort) bool        { return false }
func (noRoutes) Ports(netip.Prefix) []uint16       { return nil }

// waiting is a peer without a route. It fails the test if it receives anything.
type waiting struct{ t *testing.T }

func (w waiting) AddRemoteCandidate(c ice.Candidate) error {
	w.t.Errorf("the ICE agent is given %v", c)
	return nil
}
func (waiting) Checked(netip.AddrPort, TransactionID, []byte, time.Time)                 {}
func (waiting) Answered(netip.AddrPort, TransactionID, []byte, time.Duration, time.Time) {}
func (waiting) Routed() bool                                                             { return false }

// TestNamedAddressesAreChecked names an address that never sends anything, three times. The address receives the
// permitted checks, all of them valid, and the ICE agent receives no candidate.
func TestNamedAddressesAreChecked(t *testing.T) {
	bystander, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Close() }()
	port, err := udp.Listen(udp.Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Sockets: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = port.Close() }()
	m := New(port, noRoutes{}, Config{Records: ratelimit.Rate{PerSecond: 1, Burst: 1}})
	defer func() { _ = m.Close() }()
	// Loopback is forbidden otherwise.
	m.permits = everywhere
	agent := m.Register("local", waiting{t})
	now := time.Now()
	for n := range 3 {
		candidate, err := ice.UnmarshalCandidate(
			fmt.Sprintf("%d 1 udp %d 127.0.0.1 %d typ host", n+1, n+1, bystander.LocalAddr().(*net.UDPAddr).Port))
		if err != nil {
			t.Fatal(err)
		}
		if !agent.Name(candidate, "remote", "password", now) {
			t.Fatal("the candidate is for the ICE agent")
		}
	}
	for step := range 600 {
		m.Step(now.Add(time.Duration(step) * 100 * time.Millisecond))
	}
	// The datagram of the test arrives after all checks.
	if _, err := bystander.WriteTo([]byte("end"), bystander.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 2048)
	for n := range namedAttempts {
		if err := bystander.SetReadDeadline(time.Now().Add(wait.Patience)); err != nil {
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
		if err := user.GetFrom(&check); err != nil || user.String() != "remote:local" {
			t.Errorf("check %d is for %q, %v; expected %q", n, user.String(), err, "remote:local")
		}
		if err := stun.MessageIntegrity([]byte("password")).Check(&check); err != nil {
			t.Errorf("check %d: %v", n, err)
		}
	}
	if size, _, err := bystander.ReadFrom(buffer); err != nil || string(buffer[:size]) != "end" {
		t.Errorf("more than %d checks came, or an error: %v", namedAttempts, err)
	}
}
