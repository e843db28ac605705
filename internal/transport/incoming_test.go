package transport

import (
	"fmt"
	"testing"
	"time"
)

// TestWhatComesBeforeTheKeysIsBounded: a remote peer sends media without end, including the longest UDP datagrams, and
// never completes the handshake.
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
				p.incoming.receiveOne(media, time.Now())
			}
			p.incoming.mu.Lock()
			defer p.incoming.mu.Unlock()
			if kept := len(p.incoming.early); kept != test.kept {
				t.Errorf("%d datagrams are kept, want %d", kept, test.kept)
			}
		})
	}
}
