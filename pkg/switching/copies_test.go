package switching

import (
	"testing"

	"github.com/pion/rtp"
)

func TestCopiesAreBounded(t *testing.T) {
	c := newCopies(100 * copySize)
	h := &rtp.Header{Version: 2}
	for n := range int64(1000) {
		c.add(n, h, []byte{byte(n)})
		if c.count > 100 {
			t.Fatalf("%d copies are kept, expected at most 100", c.count)
		}
	}
	for n := range int64(1000) {
		if got, want := c.get(n) != nil, n >= 900; got != want {
			t.Fatalf("copy of %d is kept: %t, expected %t", n, got, want)
		}
	}
	c.add(5, h, nil) // far too late
	c.add(899, h, nil)
	if c.get(5) != nil || c.get(899) != nil || c.get(900) == nil {
		t.Error("a late packet took the place of a newer one")
	}
	c.add(1010, h, nil)
	c.add(1005, h, []byte{5})
	if p := c.get(1005); p == nil || p.data[p.size-1] != 5 {
		t.Error("a late packet within reach is not kept")
	}
	c.add(100_000, h, nil)
	if c.count != 1 || c.get(1010) != nil {
		t.Errorf("%d copies are kept after a jump, expected 1", c.count)
	}
	c.add(100_001, h, make([]byte, copySize))
	if c.get(100_001) != nil {
		t.Error("a packet larger than the MTU is kept")
	}
	c.clear()
	c.add(100_002, h, nil)
	if c.count != 0 {
		t.Errorf("%d copies are kept after clear", c.count)
	}
}

// TestLateCopy adds a late packet when making room for it removes its own place.
func TestLateCopy(t *testing.T) {
	c := newCopies(5 * copySize)
	for _, n := range []int64{0, 3, 4, 5, 6, 7, 2} {
		c.add(n, &rtp.Header{Version: 2}, nil)
	}
	if c.get(2) != nil || c.get(4) == nil || c.count > 5 {
		t.Errorf("%d copies are kept, number 2: %t, number 4: %t", c.count, c.get(2) != nil, c.get(4) != nil)
	}
}
