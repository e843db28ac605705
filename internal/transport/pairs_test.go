package transport

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

// pairTable drives pairs through time. Path n has the port n and one remote address.
type pairTable struct {
	t               *testing.T
	pairs           *pairs
	ports           []*mediaPort
	primary, second pairAddress
}

func newPairTable(t *testing.T) *pairTable {
	p := &pairTable{t: t, pairs: &pairs{}}
	for n := range 3 {
		port, err := udp.Listen(udp.Config{Address: netip.MustParseAddrPort("127.0.0.1:0")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = port.Close() })
		p.ports = append(p.ports, &mediaPort{Port: port, path: uint8(n)})
	}
	p.primary = p.pair(0)
	return p
}

func (p *pairTable) pair(path int) pairAddress {
	return pairAddress{p.ports[path], netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(path)}), 7882)}
}

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// run steps from a time to a time, every 250 ms. Checks on the given paths arrive and are answered.
func (p *pairTable) run(from, to int, paths ...int) {
	for ms := from; ms < to; ms += 250 {
		for _, path := range paths {
			p.pairs.checked(p.pair(path), uint8(path), at(ms))
			p.pairs.answered(p.pair(path), 20*time.Millisecond, at(ms))
		}
		p.step(ms)
	}
}

func (p *pairTable) step(ms int) {
	p.primary, p.second = p.pairs.step(p.primary, p.second, at(ms))
	p.pairs.due(p.ports)
}

// expect compares the paths of the routes, -1 for none.
func (p *pairTable) expect(ms, primary, second int) {
	p.t.Helper()
	path := func(a pairAddress) int {
		if !a.valid() {
			return -1
		}
		return int(a.port.path)
	}
	if a, b := path(p.primary), path(p.second); a != primary || b != second {
		p.t.Errorf("after %d ms the routes have the paths %d and %d, expected %d and %d", ms, a, b, primary, second)
	}
}

// TestSecondPairTakesOver: the primary path fails, and returns.
func TestSecondPairTakesOver(t *testing.T) {
	p := newPairTable(t)
	p.run(0, 1000, 0)
	p.expect(1000, 0, -1)
	p.run(1000, 5000, 0, 1)
	p.expect(5000, 0, 1)
	// Path 0 has last answered at 4750 ms.
	p.run(5000, 5750, 1)
	p.expect(5500, 0, 1)
	p.run(5750, 6000, 1)
	p.expect(5750, 1, -1)
	p.run(6000, 20_000, 1)
	p.expect(20_000, 1, -1)
	p.run(20_000, 20_250, 0, 1)
	p.expect(20_000, 1, 0)
	p.run(20_250, 22_000, 0, 1)
	p.expect(21_750, 1, 0)
	p.run(22_000, 22_250, 0, 1)
	p.expect(22_000, 0, 1)
}

// TestStalledProcessKeepsItsRoutes: this process is stalled for three seconds, and for longer than consent lasts.
func TestStalledProcessKeepsItsRoutes(t *testing.T) {
	p := newPairTable(t)
	p.run(0, 5000, 0, 1)
	p.step(8000)
	p.expect(8000, 0, 1)
	p.run(8250, 9000, 0, 1)
	p.expect(8750, 0, 1)
	p.step(14_000)
	p.expect(14_000, 0, -1)
	p.run(14_250, 14_500, 0, 1)
	p.expect(14_250, 0, 1)
}

// TestStalledPeerKeepsItsRoutes: the remote peer is stalled for two seconds. Its answers on the second path arrive
// before those on the first.
func TestStalledPeerKeepsItsRoutes(t *testing.T) {
	p := newPairTable(t)
	p.run(0, 5000, 0, 1)
	p.run(5000, 7000)
	p.expect(6750, 0, -1)
	p.run(7000, 7250, 1)
	p.expect(7000, 0, -1)
	p.run(7250, 7500, 0, 1)
	p.expect(7250, 0, 1)
}

// TestThirdPairBecomesSecond: the primary path fails, and a third path works. The first path is the second route again
// only when the third has failed.
func TestThirdPairBecomesSecond(t *testing.T) {
	p := newPairTable(t)
	p.run(0, 5000, 0, 1, 2)
	p.expect(4750, 0, 1)
	p.run(5000, 6000, 1, 2)
	p.expect(5750, 1, 2)
	p.run(6000, 7000, 0, 1)
	p.expect(6750, 1, 0)
}

// TestReturningPairIsReported: the first answer of a pair, and the first one after it has failed, are reported, so that
// the routes are chosen at once.
func TestReturningPairIsReported(t *testing.T) {
	p := newPairTable(t)
	answer := func(ms int, want bool) {
		t.Helper()
		p.pairs.checked(p.pair(1), 1, at(ms))
		if returns := p.pairs.answered(p.pair(1), time.Millisecond, at(ms)); returns != want {
			t.Errorf("after %d ms the pair returns: %t, expected %t", ms, returns, want)
		}
	}
	answer(0, true)
	p.run(0, 750)
	answer(750, false)
	p.run(750, 1750)
	answer(1750, true)
}

// TestFlappingPathStaysSecond: the preferred path answers one second of every three.
func TestFlappingPathStaysSecond(t *testing.T) {
	p := newPairTable(t)
	p.run(0, 1000, 0, 1)
	for ms := 1000; ms < 31_000; ms += 3000 {
		p.run(ms, ms+2000, 1)
		p.run(ms+2000, ms+3000, 0, 1)
		p.expect(ms+3000, 1, 0)
	}
}

// TestSecondPairExpires: the second path stops answering.
func TestSecondPairExpires(t *testing.T) {
	p := newPairTable(t)
	p.run(0, 1000, 0, 1)
	p.run(1000, 1750, 0)
	p.expect(1500, 0, 1)
	p.run(1750, 2000, 0)
	p.expect(1750, 0, -1)
	if paths := p.pairs.snapshot(p.primary, at(2000)); len(paths) != 2 || !paths[0].Alive || paths[1].Alive ||
		paths[0].RTT != 20*time.Millisecond {
		t.Errorf("paths are %+v", paths)
	}
	p.run(2000, 7000, 0)
	if check, _ := p.pairs.due(p.ports); len(check) != 1 {
		t.Errorf("after five seconds of silence %d pairs are checked, expected 1", len(check))
	}
}

// TestUnansweredPairIsNoRoute: authentic checks come from an address that answers nothing, as if a peer forged the
// source of its checks.
func TestUnansweredPairIsNoRoute(t *testing.T) {
	p := newPairTable(t)
	for ms := 0; ms < 20_000; ms += 250 {
		p.pairs.checked(p.pair(1), 1, at(ms))
		p.run(ms, ms+250, 0)
		p.expect(ms, 0, -1)
	}
	// The second route is not on an address that no check came from, either.
	p.pairs.answered(p.pair(2), time.Millisecond, at(20_000))
	p.run(20_000, 20_250, 0)
	p.expect(20_000, 0, -1)
}

// TestOneNumberIsOnePath: two addresses have one number, as after a NAT has changed its mapping. The second address is
// no second route, and takes over from the first.
func TestOneNumberIsOnePath(t *testing.T) {
	p := newPairTable(t)
	moved := p.pair(0)
	moved.remote = netip.AddrPortFrom(moved.remote.Addr(), 1)
	both := func(from, to int, first bool) {
		for ms := from; ms < to; ms += 250 {
			for _, pair := range []pairAddress{p.pair(0), moved} {
				if pair == moved || first {
					p.pairs.checked(pair, 0, at(ms))
					p.pairs.answered(pair, time.Millisecond, at(ms))
				}
			}
			p.step(ms)
		}
	}
	both(0, 5000, true)
	if p.primary != p.pair(0) || p.second.valid() {
		t.Errorf("the routes are %v and %v, expected the first pair alone", p.primary, p.second)
	}
	both(5000, 6250, false)
	if p.primary != moved || p.second.valid() {
		t.Errorf("the routes are %v and %v, expected the other pair alone", p.primary, p.second)
	}
}

// TestFlappingAddressesAreBounded: authentic checks come from ever new addresses. The working pairs stay.
func TestFlappingAddressesAreBounded(t *testing.T) {
	p := newPairTable(t)
	p.run(0, 1000, 0, 1)
	for n := range 1000 {
		pair := p.pair(1)
		pair.remote = netip.AddrPortFrom(pair.remote.Addr(), uint16(10_000+n))
		p.pairs.checked(pair, 1, at(1000))
		if count := len(p.pairs.states); count > MaxPaths {
			t.Fatalf("%d pairs are checked, expected at most %d", count, MaxPaths)
		}
	}
	p.step(1000)
	p.expect(1000, 0, 1)
}

// TestClientChecksAllItsPorts: a client checks the server's addresses from each of its ports until the server answers.
func TestClientChecksAllItsPorts(t *testing.T) {
	p := newPairTable(t)
	p.pairs.trusting = true
	server, other := netip.MustParseAddrPort("203.0.113.9:7882"), netip.MustParseAddrPort("198.51.100.9:7882")
	for _, address := range []netip.AddrPort{server, other, server, netip.MustParseAddrPort("[2001:db8::9]:7882")} {
		p.pairs.name(address)
	}
	p.primary = pairAddress{p.ports[0], server}
	p.pairs.choose(p.primary, 0, at(0))
	want := []pairAddress{p.primary, {p.ports[1], server}, {p.ports[1], other}, {p.ports[2], server},
		{p.ports[2], other}}
	if check, _ := p.pairs.due(p.ports); !slices.Equal(check, want) {
		t.Errorf("pairs to check are %v, expected %v", check, want)
	}
	p.pairs.answered(pairAddress{p.ports[1], other}, time.Millisecond, at(100))
	p.step(250)
	p.expect(250, 0, 1)
	p.pairs.drop(p.ports[1])
	p.step(250)
	p.expect(250, 0, -1)
}

// TestPriorityHasThePath: the number of a path is in the priorities of its candidates and checks.
func TestPriorityHasThePath(t *testing.T) {
	for path := range uint8(MaxPaths) {
		for _, priority := range []uint32{hostPriority(path), checkPriority(path)} {
			if got, ok := pathOf(priority); !ok || got != path {
				t.Errorf("path of priority %#x is %d, %t, expected %d", priority, got, ok, path)
			}
		}
	}
	if path, ok := pathOf(hostPriority(MaxPaths)); ok {
		t.Errorf("priority of path %d has the path %d", MaxPaths, path)
	}
}
