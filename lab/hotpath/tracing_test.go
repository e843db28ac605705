package hotpath

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/cpuprofile"
)

// TestTracingStacks: signalling counts only if receivers request times.
func TestTracingStacks(t *testing.T) {
	const module = "github.com/volsfu/volsfu"
	frame := func(name, file string) cpuprofile.Frame {
		return cpuprofile.Frame{Function: module + name, File: module + file}
	}
	noted, sent := frame("/internal/forward/egress.(*attachment).trace", "/internal/forward/egress/forwarding.go"),
		frame("/internal/forward/egress.(*writer).write", "/internal/forward/egress/forwarding.go")
	told, read := frame("/internal/signalling.(*outbox).write", "/internal/signalling/outbox.go"),
		frame("/pkg/signal.DecodeFromClient", "/pkg/signal/encoding.go")
	for _, c := range []struct {
		stack       cpuprofile.Stack
		idle, asked bool
	}{
		{cpuprofile.Stack{noted, sent}, true, true},
		{cpuprofile.Stack{sent}, false, false},
		{cpuprofile.Stack{told}, false, true},
		{cpuprofile.Stack{read}, false, true},
	} {
		if idle, asked := traces(false)(c.stack), traces(true)(c.stack); idle != c.idle || asked != c.asked {
			t.Errorf("%v counts %t, asked %t, expected %t and %t", c.stack, idle, asked, c.idle, c.asked)
		}
	}
}

// TestTracingFiles: the counted files and functions exist.
func TestTracingFiles(t *testing.T) {
	for _, function := range tracingFunctions {
		folder, method, _ := strings.Cut(function, ".(*")
		receiver, name, _ := strings.Cut(method, ").")
		declared := regexp.MustCompile(`(?m)^func \(\w+ \*` + receiver + `\) ` + name + `\(`)
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && declared.Match(text)
		}) {
			t.Errorf("no file of %s declares %s of %s", folder, name, receiver)
		}
	}
	for _, file := range tracingFiles {
		if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(file))); err != nil {
			t.Error(err)
		}
	}
}

// TestNoTracingProfile: the share in an empty profile is 0.
func TestNoTracingProfile(t *testing.T) {
	lines := NewTracing(lab.Progress{}).lines(true, cpuprofile.Profile{}, Figures{PacketsLost: 1})
	const name = "times of all frames, with reports and the kernel's stamps for every receiver: "
	if l := line(t, lines, name+"processor time in the profile"); !l.Missed() {
		t.Errorf("%v: expected a missed target", l)
	}
	if l := line(t, lines, name+"packets lost"); !l.Missed() {
		t.Errorf("%v: expected a missed target", l)
	}
}

// traceBuilt runs the check on a built server, and checks that frames are timed only if requested.
func traceBuilt(ctx context.Context, t *testing.T, path string) {
	check := NewTracing(lab.Progress{})
	check.serverBin, check.Window, check.Load = path, time.Second, smallLoad()
	lines, err := check.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range []string{"times of all frames: ",
		"times of all frames, with reports and the kernel's stamps for every receiver: "} {
		line(t, lines, asked+"share of the server's processor time")
	}
	for _, test := range []struct {
		arguments    []string
		asked, timed bool
	}{{nil, false, false}, {nil, true, true}, {[]string{"--forward-frame-times"}, false, true}} {
		if frames := framesTimed(ctx, t, path, test.asked, test.arguments...); frames > 0 != test.timed {
			t.Errorf("%v, asked by receivers %t: %g frames were timed, want some: %t", test.arguments, test.asked,
				frames, test.timed)
		}
	}
}

// framesTimed returns the number of frames that a server times under the small load.
func framesTimed(ctx context.Context, t *testing.T, path string, asked bool, arguments ...string) float64 {
	t.Helper()
	server, err := startVolsfu(ctx, path, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.close() }()
	r, err := newRig(ctx, server, smallLoad())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.close() }()
	if err := r.trace(asked); err != nil {
		t.Fatal(err)
	}
	if err := r.measure(ctx, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	return r.drained.Sum("volsfu_frame_seconds_count", `layer="hold"`)
}
