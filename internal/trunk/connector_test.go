package trunk

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/wait"
)

// TestConnectAndDisconnect calls Connect and Disconnect at both nodes in random order, while lanes are being opened.
// Afterwards there is a trunk if the dialing node wants one, and none otherwise, and one at most.
func TestConnectAndDisconnect(t *testing.T) {
	a := newAuthority()
	one, two := a.start(t, "one", options{}), a.start(t, "two", options{})
	random := rand.New(rand.NewPCG(1, 1))
	nodes := [2]*node{one, two}
	links := func(n *node) int { return n.stats().Links }
	for range 20 {
		for range random.IntN(10) {
			i := random.IntN(2)
			other := nodes[1-i]
			nodes[i].do(func(h *Host) {
				if random.IntN(2) == 0 {
					h.Connect(other.host.cfg.Node, other.host.Address())
				} else {
					h.Disconnect(other.host.cfg.Node)
				}
			})
		}
		one.do(func(h *Host) { h.Disconnect("two") })
		two.do(func(h *Host) { h.Disconnect("one") })
		wait.Until(t, "no trunk", func() bool { return links(one) == 0 && links(two) == 0 })
		two.do(func(h *Host) { h.Connect("one", one.host.Address()) })
		one.do(func(h *Host) { h.Connect("two", two.host.Address()) })
		wait.Until(t, "a trunk", func() bool { return links(one) == 1 && links(two) == 1 })
		one.do(func(h *Host) {
			before := h.links["two"]
			h.Connect("two", two.host.Address())
			if h.links["two"] != before {
				t.Error("Connect has replaced a trunk")
			}
		})
	}
}

// TestDialsBecomeRarer follows the attempts to dial a node whose trunk ends at once, and of one that lasts.
func TestDialsBecomeRarer(t *testing.T) {
	c := &connector{services: &services{cfg: Config{Node: "a"}}, peers: map[string]*peer{}}
	c.context = t.Context()
	c.connect("b", netip.MustParseAddrPort("127.0.0.1:1"))
	p := c.peers["b"]
	var attempts []time.Duration
	now := start
	for range 600 {
		if !now.Before(p.redial) {
			attempts = append(attempts, now.Sub(start))
			p.wait(now)
		}
		now = now.Add(10 * time.Millisecond)
	}
	if got, want := fmt.Sprint(attempts), "[0s 100ms 300ms 700ms 1.5s 3.1s 5.1s]"; got != want {
		t.Errorf("attempts after %s, expected %s", got, want)
	}
	c.lasted("b")
	if now.Before(p.redial) || p.backoff != minRedial {
		t.Errorf("after a trunk that has lasted, the next attempt waits for %v", p.redial.Sub(now))
	}
}

// TestRefusalsAreBounded counts the events of handshakes that fail.
func TestRefusalsAreBounded(t *testing.T) {
	c := &connector{refusals: refusalRate.Bucket()}
	var events []Event
	for i := range 1000 {
		events = append(events, c.refuse(start.Add(time.Duration(i)*time.Millisecond), netip.AddrPort{}, "reason")...)
	}
	events = append(events, c.refuse(start.Add(10*time.Second), netip.AddrPort{}, "reason")...)
	reported := uint64(0)
	for _, e := range events {
		reported += 1 + e.(Refused).Omitted
	}
	if len(events) > refusalRate.Burst+2 || reported != 1001 || c.refused != 1001 {
		t.Errorf("%d events report %d of %d refusals", len(events), reported, c.refused)
	}
}

// TestPortIsOpenedAgain makes the port of a node fail. The host opens the port again, and the trunk returns.
func TestPortIsOpenedAgain(t *testing.T) {
	a := newAuthority()
	one, two := a.start(t, "one", options{}), a.start(t, "two", options{})
	connect(t, one, two, "one", "two")
	address := two.host.Address()
	two.forget()
	two.do(func(h *Host) { h.report(portFailed{h.connector.port, errForeign}) })
	await(t, two, "the failure", func(e PortFailed) bool { return e.Err == errForeign })
	await(t, two, "the trunk", func(Linked) bool { return true })
	if two.host.Address() != address {
		t.Errorf("the address is %v, expected %v", two.host.Address(), address)
	}
}
