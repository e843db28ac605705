package transport

import (
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	const ms = time.Millisecond
	type check struct {
		answered uint64
		took     time.Duration
	}
	tests := []struct {
		name   string
		checks []check
		want   time.Duration
	}{
		{"none yet", nil, 0},
		{"not measured", []check{{0, 0}}, 0},
		{"the first", []check{{3, 40 * ms}}, 40 * ms},
		{"a quicker one", []check{{3, 40 * ms}, {4, 20 * ms}}, 20 * ms},
		{"one that was held up", []check{{3, 20 * ms}, {4, 700 * ms}}, 20 * ms},
		{"asked about again and again", []check{{3, 20 * ms}, {4, 90 * ms}, {4, 90 * ms}, {4, 90 * ms}, {4, 90 * ms},
			{4, 90 * ms}}, 20 * ms},
		{"a path that became longer", []check{{3, 20 * ms}, {4, 90 * ms}, {5, 95 * ms}, {6, 91 * ms}, {7, 92 * ms}},
			90 * ms},
		{"some that nobody asked about", []check{{3, 20 * ms}, {9, 90 * ms}, {14, 95 * ms}}, 20 * ms},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var r roundTrip
			for _, c := range test.checks {
				r.addAnswered(c.answered, c.took)
			}
			if got := r.value(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
