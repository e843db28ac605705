package adaptation

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	offer, write, step := own("(*attachment).offer", "pacing.go"), own("(*writer).write", "forwarding.go"),
		own("(*Receiver).step", "estimating.go")
	read, number := own("(*Receiver).readReports.func1", "estimating.go"), own("(*path).number", "path.go")
	fix := cpuprofile.Frame{Function: "container/heap.Fix", File: "container/heap/heap.go"}
	seal := cpuprofile.Frame{Function: "github.com/volsfu/volsfu/internal/srtp.(*Context).Seal",
		File: "github.com/volsfu/volsfu/internal/srtp/context.go"}
	admit := cpuprofile.Frame{Function: "github.com/volsfu/volsfu/internal/congestion/pacing.(*Pacer).Admit",
		File: "pacer.go"}
	for _, c := range []struct {
		name          string
		stack         cpuprofile.Stack
		adapts, reads bool
	}{
		{"in a driver", cpuprofile.Stack{offer, write}, true, false},
		{"in a step of the estimator", cpuprofile.Stack{step}, true, false},
		{"in a callee outside of the hot path", cpuprofile.Stack{fix, offer}, true, false},
		{"in the pacer", cpuprofile.Stack{admit, offer}, true, false},
		{"in sending", cpuprofile.Stack{write, offer}, false, false},
		{"in a callee of sending", cpuprofile.Stack{seal, write, offer}, false, false},
		{"in reading a report", cpuprofile.Stack{read}, false, true},
		{"in numbering a packet", cpuprofile.Stack{number, write, offer}, false, true},
		{"elsewhere", cpuprofile.Stack{seal}, false, false},
	} {
		if adapts, reads := adapts(c.stack), reads(c.stack); adapts != c.adapts || reads != c.reads {
			t.Errorf("%s: adapts %t, reads %t, expected %t and %t", c.name, adapts, reads, c.adapts, c.reads)
		}
	}
}

// TestCountedFunctions: the counted files exist, and driving files declare the reading methods.
func TestCountedFunctions(t *testing.T) {
	texts := map[string]string{}
	for _, file := range slices.Concat(driving, readingFiles) {
		text, err := os.ReadFile(filepath.Join("..", "..", "internal", "forward", "egress", file))
		if err != nil {
			t.Error(err)
		}
		texts[file] = string(text)
	}
	for _, method := range readingMethods {
		receiver, name, _ := strings.Cut(strings.TrimPrefix(method, "(*"), ").")
		declared := regexp.MustCompile(`(?m)^func \(\w+ \*` + receiver + `\) ` + name + `\(`)
		if !slices.ContainsFunc(driving, func(file string) bool { return declared.MatchString(texts[file]) }) {
			t.Errorf("no file of %v declares %s of %s", driving, name, receiver)
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
