package netem_test

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
)

// TestECNTreatment offers a packet of each codepoint to a link with each treatment.
func TestECNTreatment(t *testing.T) {
	const (
		not, ect1, ect0, ce = ecn.NotECT, ecn.ECT1, ecn.ECT0, ecn.CE
	)
	offered := []ecn.Codepoint{not, ect1, ect0, ce}
	for treatment, expected := range map[string][]ecn.Codepoint{
		"": offered, netem.ECNKeep: offered, netem.ECNClear: {not, not, not, not}, netem.ECNECT0: {not, ect0, ect0, ce},
		netem.ECNMark: {not, ce, ce, ce}, netem.ECNDrop: {not},
	} {
		link := newLink(t, with(func(c *netem.Config) { c.ECN = treatment }), 1)
		var got []ecn.Codepoint
		for _, codepoint := range offered {
			link.Send(&netem.Packet{Size: 1200, ECN: codepoint}, epoch)
		}
		for _, p := range link.Deliver(epoch) {
			got = append(got, p.ECN)
			if p.Offered() != p.ECN {
				t.Errorf("%q: a packet was offered to the queue as %d and left it as %d", treatment, p.Offered(), p.ECN)
			}
		}
		if !slices.Equal(got, expected) {
			t.Errorf("%q: %d arrived as %d, expected %d", treatment, offered, got, expected)
		}
		s := link.Stats()
		checkConservation(t, s)
		// Only a queue marks.
		if s.Marked != 0 || s.DroppedECN != uint64(len(offered)-len(expected)) || s.DroppedQueue != 0 {
			t.Errorf("%q: %+v, expected %d packets dropped for their codepoint", treatment, s,
				len(offered)-len(expected))
		}
	}
}

// TestECNTreatmentBeforeTheQueue: a link that rewrites ECT(1) has a classic queue for it, and which packets are lost
// does not depend on the treatment.
func TestECNTreatmentBeforeTheQueue(t *testing.T) {
	lost := func(treatment string) (numbers []uint64, s netem.Stats) {
		link := newLink(t, with(func(c *netem.Config) { c.ECN, c.Loss = treatment, 0.1 }), 7)
		next := uint64(0)
		for i := range uint64(1000) {
			codepoint := ecn.NotECT
			if i%10 == 0 {
				codepoint = ecn.ECT1
			}
			link.Send(&netem.Packet{Size: 1200, Number: i, ECN: codepoint}, at(time.Duration(i)*time.Millisecond))
			for _, p := range link.Deliver(at(time.Duration(i) * time.Millisecond)) {
				for ; next < p.Number; next++ {
					if next%10 != 0 {
						numbers = append(numbers, next)
					}
				}
				next = p.Number + 1
			}
		}
		return numbers, link.Stats()
	}
	kept, _ := lost(netem.ECNKeep)
	dropped, s := lost(netem.ECNDrop)
	if !slices.Equal(kept, dropped) || len(kept) < 50 || s.DroppedECN != 100 {
		t.Errorf("of the packets without ECN %d are lost with drops and %d without, %+v; expected the same",
			len(dropped), len(kept), s)
	}
}
