package adaptation

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// TestSmoke runs every check with parameters for about a second, and checks properties that hold on a machine of any
// speed.
func TestSmoke(t *testing.T) {
	load := testbed.Load{Name: "body", Tiles: 5, Qualities: 3, FrameBytes: 3000, Step: 2, Rate: 20}
	tests := []struct {
		name  string
		check lab.Check
		// certain are lines whose targets do not depend on time.
		certain []string
	}{
		{
			"saving", &Saving{Load: load, Window: 500 * time.Millisecond, Settle: 500 * time.Millisecond,
				Hold: 100 * time.Millisecond, Share: 0.6, Seed: 1},
			[]string{"strict, the others at the lowest: share of the traffic of all tracks",
				"strict, no other tile: share of the traffic of all tracks"},
		},
		{
			"switching", &Switching{RTTs: []time.Duration{0, 40 * time.Millisecond}, Switches: 5,
				Pace: 10 * time.Millisecond, Hold: 50 * time.Millisecond, Load: load, Seed: 1},
			[]string{
				"warm, to a sent quality: switches seen",
				"neighbours, to a suppressed quality: switches seen",
				"strict, to a suppressed quality: switches seen",
				"warm, a publisher 40ms away, to a sent quality: switches seen",
				"neighbours, a publisher 40ms away, to a suppressed quality: switches seen",
				"strict, a publisher 40ms away, to a suppressed quality: switches seen",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			lines, err := test.check.Run(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if test.check.Name() == "" {
				t.Error("the check has no name")
			}
			for _, name := range test.certain {
				i := slices.IndexFunc(lines, func(l claim.Line) bool { return l.Name == name && l.Target != "" })
				if i < 0 {
					t.Errorf("no target for %q among %v", name, lines)
				} else if lines[i].Missed() {
					t.Errorf("missed: %v", lines[i])
				}
			}
		})
	}
}

func TestInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i, check := range Checks(lab.Progress{}) {
		if _, err := check.Run(ctx); err == nil {
			t.Errorf("check %d ran after the interruption", i)
		}
	}
}
