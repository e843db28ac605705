package claim

import (
	"encoding/json"
	"math"
	"testing"
)

func TestLines(t *testing.T) {
	tests := []struct {
		name   string
		line   Line
		missed bool
		text   string
	}{
		{"reached", AtLeast("frames", 27, "fps", 27), false, "frames: 27 fps (target ≥ 27: met)"},
		{"not reached", AtLeast("frames", 26.9996, "fps", 27), true, "frames: 27.000 fps (target ≥ 27: MISSED)"},
		{"within", AtMost("delay", 38.25, "ms", 38.333), false, "delay: 38.250 ms (target ≤ 38.333: met)"},
		{"beyond", AtMost("delay", 1234.56, "ms", 1000), true, "delay: 1234.6 ms (target ≤ 1000: MISSED)"},
		{"as expected", Exactly("lost", 0, "", 0), false, "lost: 0 (target = 0: met)"},
		{"one too many", Exactly("lost", 1, "", 0), true, "lost: 1 (target = 0: MISSED)"},
		{"no target", Information("size", 0.000123456, "m"), false, "size: 0.000123 m"},
		{"asked for without a bound", Stated("size", 2, "m"), false, "size: 2 m"},
		{"infinite", AtLeast("ratio", math.Inf(1), "", 2), true, "ratio: 0 (target ≥ 2: MISSED)"},
		{"nothing was measured", AtLeast("share", math.NaN(), "%", 99.9), true, "share: 0 % (target ≥ 99.900: MISSED)"},
		{"without end", AtMost("delay", math.Inf(1), "ms", 5), true, "delay: 0 ms (target ≤ 5: MISSED)"},
		{"skipped", Skip("capture", "no data"), false, "capture: skipped: no data"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.line.Missed() != test.missed || test.line.String() != test.text {
				t.Errorf("missed %v, %q; want %v, %q", test.line.Missed(), test.line, test.missed, test.text)
			}
		})
	}
}

// TestSkippedInJSON: a line without a measurement has no verdict in JSON.
func TestSkippedInJSON(t *testing.T) {
	for want, line := range map[string]Line{
		`{"name":"capture","skipped":"no data"}`:                             Skip("capture", "no data"),
		`{"name":"lost","figure":1,"target":"= 0","met":false}`:              Exactly("lost", 1, "", 0),
		`{"name":"size","figure":2,"unit":"m","target":"stated","met":true}`: Stated("size", 2, "m"),
		`{"name":"rate","figure":2.5,"unit":"Mbit/s","met":true}`:            Information("rate", 2.5, "Mbit/s"),
	} {
		got, err := json.Marshal(line)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}
