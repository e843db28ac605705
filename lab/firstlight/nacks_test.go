package firstlight

import (
	"testing"
	"time"
)

func TestCausedBySwitches(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	tile := func(n int) tileRef { return tileOf("alice", "body", n) }
	// Tile 0 is switched from 1000 to 1030 ms, tile 1 from 1010 to 1050.
	switches := []switched{{tile(0), at(1000), at(1030)}, {tile(1), at(1010), at(1050)}}
	tests := []struct {
		name string
		asks []ask
		want uint64
	}{
		{"nothing", nil, 0},
		{"within the first frame", []ask{{at(1020), tile(0), 2}}, 2},
		{"soon after", []ask{{at(1120), tile(0), 1}}, 1},
		{"long after", []ask{{at(1140), tile(0), 1}}, 0},
		{"before", []ask{{at(999), tile(0), 1}}, 0},
		{"another tile", []ask{{at(1020), tile(7), 1}}, 0},
		{"two switched tiles", []ask{{at(1020), tile(0), 1}, {at(1025), tile(1), 2}}, 3},
		{"all tiles together", []ask{{at(1020), tile(7), 1}, {at(1020), tile(0), 1}, {at(1025), tile(1), 2}}, 0},
		{"all tiles together, then one tile", []ask{{at(1020), tile(0), 1}, {at(1020), tile(7), 1},
			{at(1070), tile(1), 4}}, 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := causedBySwitches(test.asks, switches); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
