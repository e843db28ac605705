package downlink

import (
	"testing"

	"github.com/volsfu/volsfu/internal/feedback"
)

func TestContinuity(t *testing.T) {
	type packet struct {
		sequence int64
		kind     feedback.Arrival
	}
	tests := []struct {
		name    string
		packets []packet
		want    breaks
	}{
		{"in order", []packet{{10, feedback.InOrder}, {11, feedback.InOrder}, {12, feedback.InOrder}}, breaks{}},
		{"two lost", []packet{{10, feedback.InOrder}, {13, feedback.InOrder}}, breaks{gaps: 2}},
		{"late, but not twice", []packet{{10, feedback.InOrder}, {12, feedback.InOrder}, {11, feedback.Reordered}},
			breaks{gaps: 1}},
		{"twice", []packet{{10, feedback.InOrder}, {11, feedback.InOrder}, {11, feedback.Old}, {12, feedback.InOrder}},
			breaks{repeats: 1}},
		{"the end of a frame that had been asked for already",
			[]packet{{10, feedback.InOrder}, {11, feedback.Recovered}}, breaks{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var n continuity
			var got breaks
			for _, p := range test.packets {
				got.add(n.received(p.sequence, p.kind))
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			n.restart()
			if again := n.received(-5000, feedback.InOrder); again != (breaks{}) {
				t.Errorf("a restarted stream breaks %+v, want nothing", again)
			}
		})
	}
}
