package icemux

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/transport/hostnet"
)

// address returns the nth of many remote addresses (RFC 5737).
func address(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, 1}), uint16(1+n))
}

// id returns the nth transaction identifier.
func id(n int) (id TransactionID) {
	binary.BigEndian.PutUint64(id[:], uint64(n+1))
	return id
}

// agentOf steps the checks of an agent that attempts to check all addresses every CheckInterval for a time, and counts
// the checks that leave, by address.
func agentOf(c *checks, addresses []netip.AddrPort, from time.Time, lasts time.Duration) map[netip.AddrPort]int {
	left := map[netip.AddrPort]int{}
	number := 1 << 20
	for now := from; now.Before(from.Add(lasts)); now = now.Add(CheckInterval) {
		for _, to := range addresses {
			number++
			if _, allowed := c.sends(to, id(number), now); allowed {
				left[to]++
			}
		}
	}
	return left
}

func everywhere(netip.AddrPort) bool { return true }

func affordable(netip.Addr, time.Time) bool { return true }

var start = time.Unix(1_000_000, 0)

// TestChecksToNamedAddresses counts the checks to addresses that do not answer.
func TestChecksToNamedAddresses(t *testing.T) {
	for _, test := range []struct {
		addresses, total, most int
		authentic              bool
	}{
		{addresses: 1, total: namedAttempts, most: namedAttempts},
		{addresses: 3, total: 3 * namedAttempts, most: namedAttempts},
		{addresses: maxRemotes, total: maxUnanswered, most: namedAttempts},
		// The number of checked addresses is bounded by the room for addresses.
		{addresses: 10 * maxRemotes, total: maxUnanswered, most: namedAttempts},
		// Without further checks from there, an authentic check from an address triggers no more checks.
		{addresses: 1, total: namedAttempts, most: namedAttempts, authentic: true},
		{addresses: maxRemotes, total: maxUnanswered, most: namedAttempts, authentic: true},
	} {
		t.Run(fmt.Sprintf("%d addresses, authentic %t", test.addresses, test.authentic), func(t *testing.T) {
			c := newChecks(false, everywhere, affordable)
			var addresses []netip.AddrPort
			for n := range test.addresses {
				addresses = append(addresses, address(n))
				if test.authentic {
					c.authenticated(address(n), start)
				}
			}
			total := 0
			for to, count := range agentOf(c, addresses, start, time.Minute) {
				if total += count; count > test.most {
					t.Errorf("%d checks went to %v, expected %d at most", count, to, test.most)
				}
			}
			if total != test.total {
				t.Errorf("%d checks left, expected %d", total, test.total)
			}
			if len(c.remotes) > maxRemotes || len(c.pending) > maxPending {
				t.Errorf("%d addresses and %d checks are kept, expected %d and %d at most", len(c.remotes),
					len(c.pending), maxRemotes, maxPending)
			}
		})
	}
}

// TestChecksArePaced counts the checks of the first second.
func TestChecksArePaced(t *testing.T) {
	c := newChecks(false, everywhere, affordable)
	var addresses []netip.AddrPort
	for n := range maxRemotes {
		addresses = append(addresses, address(n))
	}
	first := 0
	for _, count := range agentOf(c, addresses, start, CheckInterval) {
		first += count
	}
	total := first
	for _, count := range agentOf(c, addresses, start.Add(CheckInterval), time.Second-CheckInterval) {
		total += count
	}
	if most := checkBurst + checkRate; first != checkBurst || total > most {
		t.Errorf("%d checks left at once and %d in the first second, expected %d and %d at most", first, total,
			checkBurst, most)
	}
}

// TestChecksToAddressesThatAnswer: such checks are not limited.
func TestChecksToAddressesThatAnswer(t *testing.T) {
	c := newChecks(false, everywhere, affordable)
	if _, allowed := c.sends(address(0), id(0), start); !allowed {
		t.Fatal("the first check did not leave")
	}
	for name, answer := range map[string]bool{
		"from another address": answers(c, address(1), id(0), start),
		"to another check":     answers(c, address(0), id(1), start),
	} {
		if answer {
			t.Errorf("an answer %s counts", name)
		}
	}
	if !answers(c, address(0), id(0), start) || answers(c, address(0), id(0), start) {
		t.Error("an answer does not count exactly once")
	}
	if left := agentOf(c, []netip.AddrPort{address(0)}, start,
		time.Hour); left[address(0)] != int(time.Hour/CheckInterval) {
		t.Errorf("%d checks left in an hour, expected all of %d", left[address(0)], time.Hour/CheckInterval)
	}
	if len(c.pending) > maxPending {
		t.Errorf("%d checks wait for answers, expected %d at most", len(c.pending), maxPending)
	}
}

// TestChecksAnswerChecks: a remote peer continues to check from an address that does not answer. Each of its checks
// triggers another one, at most one per triggeredSpacing.
func TestChecksAnswerChecks(t *testing.T) {
	c := newChecks(false, everywhere, affordable)
	c.accepts(address(0), start)
	c.authenticated(address(0), start)
	// The first ten have left after some 7 s.
	later := start.Add(20 * time.Second)
	first := agentOf(c, []netip.AddrPort{address(0)}, start, later.Sub(start))[address(0)]
	further := 0
	for now := later; now.Before(later.Add(10 * time.Second)); now = now.Add(CheckInterval) {
		if now.Sub(later) < 5*time.Second {
			c.accepts(address(0), now)
		}
		if _, allowed := c.sends(address(0), id(int(now.UnixMilli())), now); allowed {
			further++
		}
	}
	// One at once, one after each second, and the last for a check at the end.
	if first != namedAttempts || further != 6 {
		t.Errorf("%d checks left at first and %d while checks came for 5 s, expected %d and 6", first, further,
			namedAttempts)
	}
	for n := range 10 * maxUnanswered {
		now := later.Add(time.Minute + time.Duration(n)*triggeredSpacing)
		c.accepts(address(0), now)
		c.sends(address(0), id(1<<30+n), now)
	}
	if c.unanswered != maxUnanswered {
		t.Errorf("%d checks left in all, expected %d", c.unanswered, maxUnanswered)
	}
}

// TestChecksToOneTarget: many agents check named addresses of one host, and of another one.
func TestChecksToOneTarget(t *testing.T) {
	targets := targetRate.Sources()
	victim, other := 0, 0
	for agent := range 40 {
		now := start.Add(time.Duration(agent) * time.Second)
		c := newChecks(false, everywhere, targets.Take)
		addresses := []netip.AddrPort{netip.MustParseAddrPort("198.51.100.9:4711")}
		for n := range maxRemotes - 1 {
			addresses = append(addresses, address(n))
		}
		for to, count := range agentOf(c, addresses, now, time.Second) {
			if to == addresses[0] {
				other += count
			} else {
				victim += count
			}
		}
		// An address that sends checks is checked in any case.
		c.authenticated(address(0), start)
		if _, allowed := c.sends(address(0), id(1<<40+agent), now.Add(time.Second)); !allowed &&
			c.unanswered < maxUnanswered {
			t.Errorf("agent %d does not check an address that has sent an authentic check", agent)
		}
	}
	if most := targetRate.Burst + 40*targetRate.PerSecond; victim > most || victim < targetRate.Burst {
		t.Errorf("%d checks went to one host in 40 s, expected %d at most", victim, most)
	}
	if other == 0 {
		t.Error("no check went to the other host")
	}
}

// TestChecksThatAreTaken: checks arrive from ever new addresses. The agent accepts none of them, and then some.
func TestChecksThatAreTaken(t *testing.T) {
	c := newChecks(false, everywhere, affordable)
	taken := 0
	for n := range 10 * maxRemotes {
		if c.accepts(address(n), start) {
			taken++
		}
	}
	if taken != maxUnproven {
		t.Errorf("checks from %d addresses are taken, expected %d", taken, maxUnproven)
	}
	c.authenticated(address(0), start)
	later := start.Add(2 * unprovenLife)
	// Addresses without an accepted check make room. The address with an accepted check remains.
	for n := range 10 * maxRemotes {
		if c.accepts(address(1000+n), later) != (n < maxUnproven-1) {
			t.Fatalf("the check from new address %d is taken, or is not", n)
		}
	}
	if !c.accepts(address(0), later) {
		t.Error("the address that the agent has accepted is forgotten")
	}
	// An address that answers makes room for another one.
	if _, allowed := c.sends(address(0), id(0), later); !allowed || !answers(c, address(0), id(0), later) {
		t.Fatal("a check is not answered")
	}
	if !c.accepts(address(2000), later) || c.accepts(address(2001), later) {
		t.Error("an address that answers keeps its place, or makes more than one")
	}
	// A named address makes room, too, if nothing authentic was received from it for a while.
	c = newChecks(false, everywhere, affordable)
	for n := range maxUnproven {
		if _, allowed := c.sends(address(n), id(n), start); !allowed || !c.accepts(address(n), start) {
			t.Fatalf("address %d was named, and no check leaves or is taken", n)
		}
	}
	if c.accepts(address(3000), start) || !c.accepts(address(3000), later) {
		t.Error("an address that was named keeps its place, or has none")
	}
	if !c.accepts(address(0), later) || len(c.remotes) != maxUnproven+1 {
		t.Errorf("%d addresses are kept, expected those that were named and one more", len(c.remotes))
	}
}

// TestRepliesAreBounded for addresses that do not answer.
func TestRepliesAreBounded(t *testing.T) {
	c := newChecks(false, everywhere, affordable)
	c.authenticated(address(0), start)
	left := 0
	for range 10 * maxReplies {
		if c.repliesTo(address(0)) {
			left++
		}
	}
	if left != maxReplies {
		t.Errorf("%d responses left, expected %d", left, maxReplies)
	}
	if _, allowed := c.sends(address(0), id(0), start); !allowed || !answers(c, address(0), id(0), start) {
		t.Fatal("a check is not answered")
	}
	if !c.repliesTo(address(0)) {
		t.Error("an address that has answered a check is sent no response")
	}
}

// TestChangingAddressIsBounded: a remote peer has another address every second. The mux removes
// stale addresses and their state, until the bound of one ICE generation.
func TestChangingAddressIsBounded(t *testing.T) {
	m := &Mux{
		permits: everywhere, agents: make(map[string]*Agent), owners: make(map[netip.AddrPort]owner),
		transactions: make(map[TransactionID]*Agent), targets: targetRate.Sources(),
	}
	a := m.agent("local")
	c, accepted := a.checks, 0
	for n := range 2 * (maxRemotes + maxReplaced) {
		now := start.Add(time.Duration(n) * time.Second)
		if !c.accepts(address(n), now) {
			continue
		}
		accepted++
		c.authenticated(address(n), now)
		a.own(address(n), false)
		if !c.repliesTo(address(n)) || !a.begin(address(n), id(n), now) || !answers(c, address(n), id(n), now) {
			t.Fatalf("address %d is sent no response or no check", n)
		}
		a.own(address(n), true)
		if len(c.remotes) > maxRemotes || len(a.owned) > maxRemotes || len(m.owners) > maxRemotes {
			t.Fatalf("%d addresses are kept, and %d and %d owners, expected %d at most", len(c.remotes), len(a.owned),
				len(m.owners), maxRemotes)
		}
	}
	if want := maxRemotes + maxReplaced; accepted != want {
		t.Errorf("%d addresses were accepted, expected %d", accepted, want)
	}
	if c.unanswered != 0 || c.replies != 0 {
		t.Errorf("%d checks and %d responses count, although all addresses have answered", c.unanswered, c.replies)
	}
}

// TestForbiddenAddresses: these addresses are checked only after something was received from them.
func TestForbiddenAddresses(t *testing.T) {
	config := Config{PublicIPs: []string{"198.51.100.7"}, PrivateCandidates: true}
	public := config
	public.PrivateCandidates = false
	own := hostnet.NewOwnAddresses(config.PublicIPs)
	own.Add([]string{"198.51.100.77", "2001:db8::77", "none"})
	for _, test := range []struct {
		address       string
		config        Config
		sent, sentToo bool
	}{
		{"198.51.100.8:1", config, true, true},
		{"10.1.2.3:1", config, true, true},
		{"10.1.2.3:1", public, false, true},
		{"[fd00::1]:1", public, false, true},
		{"127.0.0.1:1", config, false, true},
		{"[::1]:1", config, false, true},
		{"169.254.1.1:1", config, false, true},
		{"[fe80::1%eth0]:1", config, false, true},
		{"224.0.0.1:1", config, false, true},
		{"255.255.255.255:1", config, false, true},
		{"0.0.0.0:1", config, false, true},
		{"198.51.100.7:1", config, false, true},
		{"198.51.100.77:1", config, false, true},
		{"[2001:db8::77]:1", config, false, true},
	} {
		to := netip.MustParseAddrPort(test.address)
		c := newChecks(false, test.config.permitsChecks(own), affordable)
		if _, allowed := c.sends(to, id(0), start); allowed != test.sent {
			t.Errorf("a check to %v leaves: %t, expected %t", to, allowed, test.sent)
		}
		c.authenticated(to, start)
		if _, allowed := c.sends(to, id(1), start); allowed != test.sentToo {
			t.Errorf("a check to %v after one from there leaves: %t, expected %t", to, allowed, test.sentToo)
		}
	}
}

// TestChecksOfClients: the checks of clients are not bounded, because clients have to be the first to send.
func TestChecksOfClients(t *testing.T) {
	c := newChecks(true, func(netip.AddrPort) bool { return false }, affordable)
	loopback := netip.MustParseAddrPort("127.0.0.1:7882")
	if left := agentOf(c, []netip.AddrPort{loopback}, start, 20*time.Second); left[loopback] != 400 {
		t.Errorf("%d checks left in 20 s, expected 400", left[loopback])
	}
}

// answers reports whether a response answers a check.
func answers(c *checks, from netip.AddrPort, id TransactionID, now time.Time) bool {
	_, ok := c.answers(from, id, now)
	return ok
}
