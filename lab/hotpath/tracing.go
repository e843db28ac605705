package hotpath

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/cpuprofile"
	"github.com/volsfu/volsfu/test/claim"
)

// Tracing measures the share of frame times in profiles of the server's processor time. The first profile has the times
// of all frames for the metrics, which operators can leave on. In the second, every receiver also requests its own
// times, whose cost grows with frames and receivers. A comparison with a server without frame times would not work: the
// cost of a packet varies by a tenth from one second to the next.
type Tracing struct {
	bench
	Load Load
	// Window is the time covered by a profile.
	Window time.Duration
	// Share is the bound for the times of all frames.
	Share float64
}

// NewTracing returns the check of the cost of frame times, under the load of the first claim of forwarding with twice
// as many receivers. At 28 % of a core and 100 samples per second, 40 s are 1,100 samples: a share of a hundredth is
// measured to within a third (the standard deviation of 11 samples).
func NewTracing(progress lab.Progress) *Tracing {
	load := DefaultLoad()
	load.Receivers *= 2
	return &Tracing{bench: bench{progress: progress}, Load: load, Window: 40 * time.Second, Share: 0.01}
}

// Name implements lab.Check.
func (t *Tracing) Name() string {
	return fmt.Sprintf("the cost of frame times in the server: %d receivers at %g Mbit/s", t.Load.Receivers,
		t.Load.Mbps)
}

// Run implements lab.Check.
func (t *Tracing) Run(ctx context.Context) (lines []claim.Line, err error) {
	options := Options{ServerBin: t.serverBin, Arguments: append([]string{"--forward-frame-times"}, t.arguments...)}
	server, err := options.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	r, err := newRig(ctx, server, t.Load)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, asked := range []bool{false, true} {
		t.progress.Say("recording a profile of %v, frame times requested by receivers: %t", t.Window, asked)
		if err := r.trace(asked); err != nil {
			return lines, err
		}
		taken, err := t.profile(ctx, r, server.program.Admin)
		if err != nil {
			return lines, err
		}
		lines = append(lines, t.lines(asked, taken, r.figures())...)
	}
	return lines, nil
}

// profile records a profile while frames are forwarded.
func (t *Tracing) profile(ctx context.Context, r *rig, admin string) (taken cpuprofile.Profile, err error) {
	var taking sync.WaitGroup
	taking.Go(func() {
		if err = lab.Pause(ctx, warmTime); err == nil {
			taken, err = cpuprofile.Take(ctx, admin, t.Window)
		}
	})
	r.window = window{}
	measured := r.measure(ctx, t.Window)
	taking.Wait()
	return taken, errors.Join(err, measured)
}

// Functions and files that measure, report and relay frame times. While receivers request frame times, nearly all
// websocket traffic consists of them.
var (
	tracingFiles = []string{
		"/internal/forward/trace/frames.go", "/internal/sfu/frametimes/frametimes.go", "/internal/transport/stamps.go",
		"/internal/udp/stamps_linux.go", "/pkg/signal/frame_times.go",
	}
	tracingFunctions   = []string{"/internal/forward/egress.(*attachment).trace"}
	signallingPackages = []string{"/internal/signalling.", "/pkg/signal."}
)

// traces returns a predicate for stacks of frame times, callees included; if asked, stacks of signalling count as well.
func traces(asked bool) func(cpuprofile.Stack) bool {
	return func(s cpuprofile.Stack) bool {
		return s.ThroughFile(tracingFiles...) || s.Through(tracingFunctions...) ||
			asked && s.Through(signallingPackages...)
	}
}

// lines returns the figures of one profile.
func (t *Tracing) lines(asked bool, taken cpuprofile.Profile, f Figures) []claim.Line {
	total := taken.Total().Seconds()
	share := 0.0
	if total > 0 {
		share = 100 * taken.Of(traces(asked)).Seconds() / total
	}
	name := "times of all frames"
	taking := claim.AtMost(name+": share of the server's processor time", share, "%", 100*t.Share)
	if asked {
		name += ", with reports and the kernel's stamps for every receiver"
		taking = claim.Information(name+": share of the server's processor time", share, "%")
	}
	return []claim.Line{
		taking,
		claim.AtLeast(name+": processor time in the profile", total, "s", t.Window.Seconds()/100),
		claim.Information(name+": CPU per forwarded packet", f.CPU, "µs"),
		claim.Exactly(name+": packets lost", int64(f.PacketsLost), "", 0),
		claim.Information(name+": machine busy", 100*f.MachineBusy, "%"),
	}
}

// trace makes all receivers start or stop requesting the times of their frames.
func (r *rig) trace(wanted bool) error {
	for _, m := range r.members {
		if m.receiver == nil || m.trace == nil {
			continue
		}
		if err := m.trace(wanted); err != nil {
			return err
		}
	}
	return nil
}
