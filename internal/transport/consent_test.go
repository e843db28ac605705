package transport

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/transport/icemux"
)

var start = time.Unix(1_000_000, 0)

// TestConsent: a remote peer answers, falls silent, and answers again.
func TestConsent(t *testing.T) {
	var c consent
	address := func(n int) pairAddress {
		return pairAddress{remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, 1}), uint16(1+n))}
	}
	id := func(n int) icemux.TransactionID { return icemux.TransactionID{11: byte(n)} }
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	check := func(n int) []byte { return []byte{byte(n)} }
	step := func(ms int, fresh bool, repeated []byte) {
		t.Helper()
		if f, r := c.step(at(ms), nil); f != fresh || !bytes.Equal(r, repeated) {
			t.Errorf("after %d ms: consents %t, repeats %x; expected %t, %x", ms, f, r, fresh, repeated)
		}
	}
	answered := func(ms, from, number int, took time.Duration, there bool) {
		t.Helper()
		if tk, th := c.answered(address(from), id(number), at(ms)); tk != took || th != there {
			t.Errorf("after %d ms: took %v, there %t; expected %v, %t", ms, tk, th, took, there)
		}
	}
	c.begin(address(0), at(0))
	c.checked(address(1), id(1), check(1), at(100))
	step(900, true, nil)
	c.checked(address(0), id(2), check(2), at(1000))
	answered(1020, 0, 2, 20*time.Millisecond, true)
	c.checked(address(0), id(3), check(3), at(3000))
	step(3400, true, nil)
	step(3500, true, check(3))
	step(3750, true, nil)
	answered(3800, 1, 3, 0, false)
	// The answer does not show which of the two transmissions it answers.
	answered(3900, 0, 3, 0, true)
	step(5000, true, nil)
	c.checked(address(0), id(4), check(4), at(5100))
	answered(5200, 0, 3, 0, true)
	step(5600, true, check(4))
	step(10_199, true, check(4))
	step(10_200, false, nil)
	answered(20_000, 0, 4, 0, true)
	step(20_000, true, nil)
	c.begin(address(2), at(30_000))
	step(30_000, true, nil)
	answered(30_001, 0, 4, 0, false)
}
