package fidelity

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/test/claim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSmoke runs short measurements. The figures depend on the machine and are judged by the check. The counts do not,
// and are correct whenever the network was in time.
func TestSmoke(t *testing.T) {
	small := cell{10 * time.Millisecond, 10}
	for name, measure := range map[string]func(context.Context) ([]claim.Line, error){
		"ping": small.ping, "sweep": small.sweep, "loss": func(ctx context.Context) ([]claim.Line,
			error) {
			return loss(ctx, 0.1, 1)
		},
		"sustained": sustained{delay: 10 * time.Millisecond, mbps: 8, link: 10, lasts: 300 * time.Millisecond}.measure,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, err := measure(t.Context())
			var invalid invalidError
			switch {
			case errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN):
				t.Skipf("skipped: %v", err)
			case errors.As(err, &invalid):
				t.Logf("%v", err)
			case err != nil || len(lines) == 0:
				t.Errorf("%v, %v", lines, err)
			}
			for _, l := range lines {
				if name == "loss" && !l.Met {
					t.Errorf("%v", l)
				}
			}
		})
	}
}

// TestLossFollowsTheSeed: another seed loses other packets, and the same seed the same packets.
func TestLossFollowsTheSeed(t *testing.T) {
	var lost []float64
	for _, seed := range []uint64{1, 2, 1} {
		lines, err := loss(t.Context(), 0.01, seed)
		var invalid invalidError
		switch {
		case errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN) || errors.As(err, &invalid):
			t.Skipf("skipped: %v", err)
		case err != nil:
			t.Fatal(err)
		}
		lost = append(lost, lines[0].Figure)
	}
	if lost[0] == lost[1] || lost[0] != lost[2] {
		t.Errorf("lost %v packets, expected other packets with the second seed only", lost)
	}
}
