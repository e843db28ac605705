package congestion

import (
	"testing"
	"time"
)

func TestContention(t *testing.T) {
	type report struct {
		at            time.Duration
		lost, packets int
		queued        time.Duration
		want          bool
	}
	const s, ms = time.Second, time.Millisecond
	tests := []struct {
		name     string
		inherent float64
		reports  []report
	}{
		{"an overflow, and a queue that others keep", 0, []report{
			{1 * s, 0, 100, 30 * ms, false}, {2 * s, 3, 100, 35 * ms, true}, {3 * s, 0, 100, 20 * ms, true}, {9 * s, 0, 100, 30 * ms, true},
		}},
		{"a queue of the sender's own, which it has just filled", 0, []report{{1 * s, 0, 100, 0, false}, {1200 * ms, 10, 100, 40 * ms, false}, {1500 * ms, 0, 100, 3 * ms, false}}},
		{"others that leave", 0, []report{{1 * s, 10, 100, 40 * ms, true}, {2 * s, 0, 100, 20 * ms, true}, {3 * s, 0, 100, 3 * ms, false}, {4 * s, 0, 100, 30 * ms, false}}},
		{"it is long ago", 0, []report{{1 * s, 10, 100, 40 * ms, true}, {15 * s, 0, 100, 40 * ms, true}, {16 * s, 0, 100, 40 * ms, false}}},
		{"losses of the path", 0.05, []report{{1 * s, 5, 100, 20 * ms, false}, {2 * s, 17, 100, 20 * ms, false}, {3 * s, 18, 100, 20 * ms, true}}},
		{"losses of the path, of few packets", 0.1, []report{{1 * s, 2, 5, 20 * ms, false}, {2 * s, 3, 5, 20 * ms, false}, {3 * s, 4, 5, 20 * ms, true}}},
		{"an outage", 0, []report{{1 * s, 10, 100, 40 * ms, true}, {2 * s, 30, 100, 300 * ms, false}, {2200 * ms, 30, 100, 150 * ms, false}}},
		{"nothing arrived", 0, []report{{1 * s, 4, 4, 1<<63 - 1, false}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var c contention
			for _, r := range test.reports {
				if c.reported(r.at, r.lost, r.packets, test.inherent, r.queued); c.present != r.want {
					t.Errorf("at %v: %v, expected %v", r.at, c.present, r.want)
				}
			}
		})
	}
}
