package icemux

import (
	"net/netip"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

// request begins like a STUN request.
var request = []byte{0, 1}

// portOf returns the flooder for one address and port.
func portOf(address netip.AddrPort) flooder {
	return flooder{netip.PrefixFrom(address.Addr(), address.Addr().BitLen()), address.Port()}
}

// host returns the address of the nth of many remote hosts (RFC 2544).
func host(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(n >> 8), byte(n)}), 4711)
}

// TestFloodsOfOtherDatagrams: media, as after the end of a session, and responses are not shunned.
func TestFloodsOfOtherDatagrams(t *testing.T) {
	for first, shunned := range map[byte]bool{0: true, 1: false, 19: false, 20: true, 63: true, 64: false, 128: false} {
		var f floods
		for range 10 * portFlood {
			f.note([]byte{first}, address(0))
		}
		if _, changed := f.step(start); changed != shunned {
			t.Errorf("a flood of datagrams that begin with %d is shunned: %t, expected %t", first, changed, shunned)
		}
	}
}

// TestFloods: one address floods without end and one for a moment, and others slightly exceed the limit.
func TestFloods(t *testing.T) {
	var f floods
	rejected := map[int]int{}
	shuns, before := 0, false
	for step := range 400 {
		now := start.Add(time.Duration(step) * StepInterval)
		if !before {
			for range 10 * portFlood {
				f.note(request, host(0))
			}
		}
		if step == 0 {
			for range portFlood {
				f.note(request, host(1))
			}
		}
		for n := range 10 * maxFlooders {
			f.note(request, host(2+n))
		}
		flooders, changed := f.step(now)
		if !changed {
			if before {
				rejected[0]++
			}
			continue
		}
		shunned := map[int]bool{}
		for _, r := range flooders {
			for n := range 2 {
				shunned[n] = shunned[n] || r == portOf(host(n))
			}
			if r != portOf(host(0)) && r != portOf(host(1)) {
				t.Fatalf("%v is rejected, which has sent few", r)
			}
		}
		if shunned[1] != (step < 4) {
			t.Errorf("after %d steps the short flood's address is shunned: %t", step, shunned[1])
		}
		if shunned[0] && !before {
			shuns++
		}
		if before = shunned[0]; before {
			rejected[0]++
		}
	}
	// 1 + 2 + 4 + 8 s, then 16 s each, with a step between them, in 100 s.
	if shuns < 8 || shuns > 10 || rejected[0] < 380 {
		t.Errorf("the long flood was shunned %d times, for %d of 400 intervals; expected about 9 times, and nearly all",
			shuns, rejected[0])
	}
	if len(f.ports) > maxFlooders || len(f.sources) > maxFlooders {
		t.Errorf("%d ports and %d sources are counted, expected %d at most", len(f.ports), len(f.sources), maxFlooders)
	}
}

// TestManyFloods: more addresses flood than can be shunned.
func TestManyFloods(t *testing.T) {
	var f floods
	for n := range maxFlooders {
		for range portFlood {
			f.note(request, host(n))
		}
	}
	if flooders, changed := f.step(start); !changed || len(flooders) != udp.MaxRejected {
		t.Errorf("%d are shunned, changed %t; expected %d", len(flooders), changed, udp.MaxRejected)
	}
	// If the kernel drops nothing, the datagrams still arrive.
	for n := range maxFlooders {
		for range portFlood {
			f.note(request, host(n))
		}
	}
	if _, changed := f.step(start.Add(StepInterval)); changed || f.active != udp.MaxRejected {
		t.Errorf("%d are shunned, changed %t; expected %d as before", f.active, changed, udp.MaxRejected)
	}
	if flooders, changed := f.step(start.Add(leastShun)); !changed || len(flooders) != 0 {
		t.Errorf("%d are shunned after the time is over, changed %t; expected none", len(flooders), changed)
	}
	if f.step(start.Add(3 * leastShun)); len(f.shunned) != 0 {
		t.Errorf("%d addresses are remembered, expected none", len(f.shunned))
	}
}

// TestFloodFromManyPorts: more ports of one source flood than are counted, and each port sends little.
func TestFloodFromManyPorts(t *testing.T) {
	for name, test := range map[string]struct {
		address string
		prefix  string
		count   int
	}{
		"IPv4":                 {"203.0.113.1", "203.0.113.1/32", sourceFlood},
		"IPv6":                 {"2001:db8::1", "2001:db8::/64", sourceFlood},
		"below the limit":      {"203.0.113.1", "", sourceFlood - 1},
		"this host's programs": {"127.0.0.1", "", 10 * sourceFlood},
	} {
		t.Run(name, func(t *testing.T) {
			var f floods
			for n := range test.count {
				f.note(request, netip.AddrPortFrom(netip.MustParseAddr(test.address), uint16(1+n%5000)))
			}
			flooders, changed := f.step(start)
			if test.prefix == "" {
				if changed {
					t.Errorf("%v are shunned, expected none", flooders)
				}
				return
			}
			if want := (flooder{prefix: netip.MustParsePrefix(test.prefix)}); len(flooders) != 1 ||
				flooders[0] != want {
				t.Errorf("%v are shunned, expected %v", flooders, want)
			}
		})
	}
}
