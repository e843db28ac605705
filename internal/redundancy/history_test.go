package redundancy

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestHistoryFindsPackets compares find with a search through all packets that are kept. Streams have few sequence
// numbers, so that numbers are used again. The positions cross 2^32.
func TestHistoryFindsPackets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	start := time.Unix(1_000_000, 0)
	for _, first := range []uint64{0, 1<<32 - 6000} {
		h := &history{start: start, last: first}
		found := 0
		for n := range 20_000 {
			ssrc, sequence := uint32(random.IntN(4)), uint16(random.IntN(3000))
			position, ok := h.find(ssrc, sequence)
			want := h.last
			for want >= max(h.oldest(), first+1) {
				if p := h.at(want); p.ssrc == ssrc && p.sequence == sequence {
					break
				}
				want--
			}
			if expected := want >= max(h.oldest(), first+1); ok != expected || ok && position != want {
				t.Fatalf("after %d packets: position %d, %t, expected %d, %t", n, position, ok, want, expected)
			}
			if ok {
				found++
			}
			h.add(&Packet{SSRC: uint32(random.IntN(4)), Sequence: uint16(random.IntN(3000)), Size: 100}, 0, false,
				start.Add(time.Duration(n)*time.Millisecond))
		}
		if found < 1000 {
			t.Errorf("%d packets were found, expected 1000 or more", found)
		}
	}
}
