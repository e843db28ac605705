package adaptation

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/lab/cpuprofile"
	"github.com/volsfu/volsfu/test/testbed"
)

// TestAttribution: the functions of the hot path that drive estimator and pacer count, with their callees outside of
// the hot path, and without the functions of the hot path that they call to send.
func TestAttribution(t *testing.T) {
	const forward = "github.com/volsfu/volsfu/internal/forward/egress"
	own := func(name, file string) cpuprofile.Frame {
		return cpuprofile.Frame{Function: forward + "." + name, File: forward + "/" + file}
	}
	offer, write, hear := own("(*writer).offer", "pacing.go"), own("(*writer).write", "forwarding.go"),
		own("(*writer).hear", "departures.go")
	fix := cpuprofile.Frame{Function: "container/heap.Fix", File: "container/heap/heap.go"}
	seal := cpuprofile.Frame{Function: "github.com/volsfu/volsfu/internal/srtp.(*Context).Seal",
		File: "github.com/volsfu/volsfu/internal/srtp/context.go"}
	admit := cpuprofile.Frame{Function: "github.com/volsfu/volsfu/internal/congestion/pacing.(*Pacer).Admit",
		File: "pacer.go"}
	for _, c := range []struct {
		name    string
		stack   cpuprofile.Stack
		counted bool
	}{
		{"in a driver", cpuprofile.Stack{offer, write}, true},
		{"in a callee outside of the hot path", cpuprofile.Stack{fix, offer}, true},
		{"in the pacer", cpuprofile.Stack{admit, offer}, true},
		{"in sending", cpuprofile.Stack{write, offer}, false},
		{"in a callee of sending", cpuprofile.Stack{seal, write, offer}, false},
		{"in reading a report", cpuprofile.Stack{hear}, false},
		{"elsewhere", cpuprofile.Stack{seal}, false},
	} {
		if got := in(adapting, driving)(c.stack); got != c.counted {
			t.Errorf("%s: counted %t, expected %t", c.name, got, c.counted)
		}
	}
}

// TestDrivingFiles: the counted files exist.
func TestDrivingFiles(t *testing.T) {
	for _, file := range slices.Concat(driving, hearing) {
		if _, err := os.Stat(filepath.Join("..", "..", "internal", "forward", "egress", file)); err != nil {
			t.Error(err)
		}
	}
}

// TestAttend connects a small load to a running server.
func TestAttend(t *testing.T) {
	there, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	conference := testbed.Attend(there.Server.URL())
	defer conference.Close()
	cost := &Cost{Load: testbed.Load{Name: "body", Tiles: 2, Qualities: 1, FrameBytes: 2000, Rate: 20}, Receivers: 2,
		Settle: 500 * time.Millisecond}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	receivers, err := cost.attend(ctx, conference)
	if err != nil || len(receivers) != 2 {
		t.Fatalf("%d receivers, %v", len(receivers), err)
	}
}
