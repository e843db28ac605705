package ecn

import "testing"

func TestTwoPaths(t *testing.T) {
	var p TwoPaths
	for n, arrival := range []struct {
		path           uint8
		arrived, wants Codepoint
	}{
		{1, NotECT, NotECT}, {0, ECT1, ECT1}, {1, NotECT, ECT1}, {0, CE, CE}, {1, NotECT, ECT1}, {1, CE, CE},
		{0, NotECT, NotECT}, {1, NotECT, NotECT},
		// The sender moves to path 1 and copies on path 0, and then to path 0 again, which clears the field by now.
		{0, ECT1, ECT1}, {1, ECT1, ECT1}, {0, NotECT, ECT1}, {1, ECT1, ECT1}, {0, NotECT, ECT1}, {1, NotECT, NotECT},
		{0, NotECT, NotECT}, {2, NotECT, NotECT},
	} {
		if got := p.Reported(arrival.path, arrival.arrived); got != arrival.wants {
			t.Errorf("arrival %d: %v on path %d is reported as %v, expected %v", n, arrival.arrived, arrival.path, got,
				arrival.wants)
		}
	}
}

// TestSilentPath: a path that has delivered nothing for long does not hide that the other one clears the field.
func TestSilentPath(t *testing.T) {
	var p TwoPaths
	p.Reported(0, ECT1)
	for n := range 2 * maxRun {
		want := ECT1
		if n >= maxRun-1 {
			want = NotECT
		}
		if got := p.Reported(1, NotECT); got != want {
			t.Fatalf("packet %d of a path that clears the field is reported as %v, expected %v", n, got, want)
		}
	}
}
