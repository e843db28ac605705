package transport

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// TestWhatComesBeforeTheKeysIsBounded has a remote peer send media without end, in the longest datagrams that UDP takes among others, and never any keys.
func TestWhatComesBeforeTheKeysIsBounded(t *testing.T) {
	const longest = 65507
	for _, test := range []struct {
		bytes, kept int
	}{
		{1200, maxEarly},
		{receiveBytes, maxEarly},
		{receiveBytes + 1, 0},
		{longest, 0},
	} {
		t.Run(fmt.Sprintf("%d bytes", test.bytes), func(t *testing.T) {
			p := newLone(t, loopbackConfig())
			media := make([]byte, test.bytes)
			media[0] = 0x80
			for range maxEarly + 1 {
				p.receiveOne(media, time.Now())
			}
			p.incoming.mu.Lock()
			defer p.incoming.mu.Unlock()
			if kept := len(p.incoming.early); kept != test.kept {
				t.Errorf("%d datagrams are kept, want %d", kept, test.kept)
			}
		})
	}
}

// TestLongDatagramsDoNotWaitForICE: anybody may send them, and ICE would drop them.
func TestLongDatagramsDoNotWaitForICE(t *testing.T) {
	c := newControlConn(nil)
	source := netip.MustParseAddrPort("127.0.0.1:1")
	for _, bytes := range []int{receiveBytes + 1, receiveBytes} {
		c.deliverOne(make([]byte, bytes), source)
	}
	buffer := make([]byte, 2*receiveBytes)
	if n, from, err := c.ReadFromAddrPort(buffer); n != receiveBytes || from != source || err != nil || len(c.queue) != 0 {
		t.Errorf("got %d bytes from %v, %v, and %d more datagrams; want %d from %v and no more", n, from, err, len(c.queue), receiveBytes, source)
	}
}
