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
	} {
		if got := p.Reported(arrival.path, arrival.arrived); got != arrival.wants {
			t.Errorf("arrival %d: %v on path %d is reported as %v, expected %v", n, arrival.arrived, arrival.path, got,
				arrival.wants)
		}
	}
}
