package lab

import (
	"math"
	"testing"
)

func TestLines(t *testing.T) {
	tests := []struct {
		name string
		line Line
		met  bool
		text string
	}{
		{"reached", AtLeast("frames", 27, "fps", 27), true, "frames: 27 fps (target ≥ 27: met)"},
		{"not reached", AtLeast("frames", 26.9996, "fps", 27), false, "frames: 27.000 fps (target ≥ 27: MISSED)"},
		{"within", AtMost("delay", 38.25, "ms", 38.333), true, "delay: 38.250 ms (target ≤ 38.333: met)"},
		{"beyond", AtMost("delay", 1234.56, "ms", 1000), false, "delay: 1234.6 ms (target ≤ 1000: MISSED)"},
		{"as expected", Exactly("lost", 0, "", 0), true, "lost: 0 (target = 0: met)"},
		{"one too many", Exactly("lost", 1, "", 0), false, "lost: 1 (target = 0: MISSED)"},
		{"no target", Information("size", 0.000123456, "m"), true, "size: 0.000123 m"},
		{"nothing was measured", AtLeast("share", math.NaN(), "%", 99.9), false, "share: 0 % (target ≥ 99.900: MISSED)"},
		{"without end", AtMost("delay", math.Inf(1), "ms", 5), false, "delay: 0 ms (target ≤ 5: MISSED)"},
		{"skipped", Skip("capture", "no data"), true, "capture: skipped: no data"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.line.Met != test.met || test.line.String() != test.text {
				t.Errorf("got %v, %q; want %v, %q", test.line.Met, test.line, test.met, test.text)
			}
		})
	}
}
