package choice

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestTracker plays transcripts: "ask Q", "frame N Q AGE", "off" and "withdraw", each with a time in milliseconds, and
// the results of frames. The age of a frame is the time since its capture, 0 if omitted.
func TestTracker(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"a request that shows", "0 frame 1 2; 10 ask 0; 30 frame 2 2; 60 frame 3 0; 90 frame 4 0", "3: 50ms switched"},
		{"superseded requests are not measured", "0 frame 1 2; 10 ask 0; 20 ask 1; 60 frame 3 1", "3: 40ms switched"},
		{"one that shows all the same before it is superseded",
			"0 frame 1 2; 10 ask 0; 40 frame 2 0; 50 ask 1; 90 frame 3 1", "2: 30ms switched, 3: 40ms switched"},
		{"what is shown already", "0 frame 1 2; 10 ask 2; 30 frame 2 2", ""},
		{"back before it took effect", "0 frame 1 2; 10 ask 0; 20 ask 2; 30 frame 2 2", ""},
		{"off is not measured", "0 frame 1 2; 10 ask -1; 30 frame 2 2", ""},
		{"back from off", "0 frame 1 2; 10 ask -1; 30 off; 500 ask 2; 530 frame 20 2", "20: 30ms"},
		{"under way when it was switched off",
			"0 frame 1 2; 30 off; 40 frame 2 2 20; 50 ask 2; 60 frame 3 2 40; 90 frame 4 2 20", "4: 40ms"},
		{"the first request, before any frame", "0 ask 1; 100 frame 1 1", "1: 100ms"},
		{"left to the server", "0 frame 1 2; 10 ask 0; 20 withdraw; 60 frame 3 0", "3: switched"},
		{"frames out of order are one switch", "0 frame 1 2; 30 frame 3 0; 31 frame 2 2; 60 frame 4 0", "3: switched"},
		{"numbers from the beginning", "0 frame 900 2; 50 frame 1 2; 60 frame 2 0", "2: switched"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := play(t, test.script); got != test.want {
				t.Errorf("expected %q, got %q", test.want, got)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	t.Helper()
	tracker := NewTracker()
	ref := volumetric.TrackRef{Quality: volumetric.QualityOff}
	var got []string
	for _, step := range strings.Split(script, ";") {
		var ms, a, b, age int
		var verb string
		if n, _ := fmt.Sscan(step, &ms, &verb, &a, &b, &age); n < 2 {
			t.Fatalf("cannot read step %q", step)
		}
		now := time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond)
		switch verb {
		case "ask":
			tracker.Requested(ref, volumetric.Quality(a), now)
		case "off":
			tracker.Off(ref, now)
		case "withdraw":
			tracker.Withdrawn(ref)
		case "frame":
			latency, fulfilled, switched := tracker.Decoded(ref, volumetric.Quality(b), int64(a),
				now.Add(-time.Duration(age)*time.Millisecond), now)
			text := ""
			if fulfilled {
				text = " " + latency.String()
			}
			if switched {
				text += " switched"
			}
			if text != "" {
				got = append(got, fmt.Sprintf("%d:%s", a, text))
			}
		}
	}
	return strings.Join(got, ", ")
}
