package firstlight

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// TestSmoke runs every check that requires no other program, with parameters for about a second, and checks properties
// that hold on a machine of any speed.
func TestSmoke(t *testing.T) {
	load := testbed.Load{Name: "body", Tiles: 2, Qualities: 2, FrameBytes: 3000, Step: 2, Rate: 20}
	tests := []struct {
		name  string
		check lab.Check
		// certain are lines whose targets do not depend on time.
		certain []string
	}{
		{
			"switching", &Switching{Switches: 10, Pace: 10 * time.Millisecond, Load: load, Seed: 1},
			[]string{"switches seen", "repeats in the receiver's sequence numbers"},
		},
		{
			"large", &Large{Frames: 2, Deadline: 500 * time.Millisecond, Cases: []LargeCase{{300_000, 5}}},
			[]string{"0.3 MB: frames complete and verified", "0.3 MB: frames with wrong bytes"},
		},
		{
			"loss", &Loss{Duration: 300 * time.Millisecond, FrameBytes: 5000, FrameRate: 20,
				Deadline: 500 * time.Millisecond, RTT: 4 * time.Millisecond,
				Cases: []LossCase{{0.02, 0}}, Seed: 1},
			[]string{"2 % loss: frames decodable"},
		},
		{
			"room", &Room{Participants: 3, Load: load, Rounds: 1, Window: 200 * time.Millisecond, JoinTime: time.Minute,
				Gap: time.Minute, Lines: 12},
			[]string{"websocket open → first frame of every tile of every participant, longest",
				"offers per join, including those to the newcomer"},
		},
		{
			"churn", &Churn{Rounds: 3, Warmup: 2, Load: load, HeapPerRound: 10 << 20, Calm: 100 * time.Millisecond,
				Settle: 10 * time.Second},
			[]string{"goroutines after", "file descriptors after"},
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
	for i, check := range []lab.Check{NewSwitching(lab.Progress{}), NewLarge(lab.Progress{}), NewLoss(lab.Progress{}),
		NewChurn(lab.Progress{})} {
		if _, err := check.Run(ctx); err == nil {
			t.Errorf("check %d ran after the interruption", i)
		}
	}
}

func TestNumbers(t *testing.T) {
	if n := len(Checks(lab.Progress{})); n != 7 {
		t.Errorf("there are %d checks, want 7", n)
	}
}
