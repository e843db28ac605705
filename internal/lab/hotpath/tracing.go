package hotpath

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/awake"
)

// Tracing compares the server's CPU time per forwarded packet with times of all frames and without them, in turns.
type Tracing struct {
	bench
	Load Load
	// Rounds is how many pairs of servers are started, since two processes of the same program differ, too, and Turns how often the servers of a pair are measured, for Window
	// each.
	Rounds, Turns int
	Window        time.Duration
	// Share is how much more it may be, in parts of what it is without.
	Share float64
}

// NewTracing is the check of what times of frames cost, under the load of the first claim of forwarding. With attaching and warming up its 21 windows take some 80 s.
func NewTracing(progress lab.Progress) *Tracing {
	return &Tracing{bench: bench{progress: progress}, Load: DefaultLoad(), Rounds: 3, Turns: 3, Window: 1500 * time.Millisecond, Share: 0.01}
}

// Name implements lab.Check.
func (t *Tracing) Name() string {
	return fmt.Sprintf("what times of frames cost the server: %d receivers at %g Mbit/s, in turns with and without", t.Load.Receivers, t.Load.Mbps)
}

// traced is what was measured: CPU times per forwarded packet with times of all frames in parts of those without, pair by pair; the same where every receiver asks for them; and those
// without, in microseconds.
type traced struct {
	all, asked, without []float64
	// invalid counts pairs that are left out, because packets were lost or the machine was full; busiest is the most that it was.
	invalid int
	busiest float64
}

// Run implements lab.Check.
func (t *Tracing) Run(ctx context.Context) ([]lab.Line, error) {
	if release, err := awake.Demand(); err != nil {
		t.progress.Say("idle processors sleep, and waking them counts: %v", err)
	} else {
		defer release()
	}
	var sum traced
	for round := range t.Rounds {
		t.progress.Say("pair of servers %d of %d", round+1, t.Rounds)
		if err := t.round(ctx, round, &sum); err != nil {
			return nil, err
		}
	}
	return sum.lines(t.Share), nil
}

// round measures one pair of servers. In every second one the server with times of frames is the first to be started.
func (t *Tracing) round(ctx context.Context, number int, sum *traced) (err error) {
	var rigs [2]*rig // without and with
	for i := range rigs {
		which := (number + i) % 2
		options := Options{ServerBin: t.serverBin, Arguments: slices.Clone(t.arguments)}
		if which == 1 {
			options.Arguments = append(options.Arguments, "--forward-frame-times")
		}
		server, failed := options.start(ctx)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, server.close()) }()
		if rigs[which], failed = newRig(ctx, server, t.Load); failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, rigs[which].close()) }()
	}
	var figures [2]Figures
	for turn := range t.Turns {
		// Each is first in every second turn.
		for i := range rigs {
			which := (turn + i) % 2
			if figures[which], err = t.window(ctx, rigs[which]); err != nil {
				return err
			}
		}
		sum.add(&sum.all, t.Load, &figures[0], &figures[1])
	}
	// In the end the receivers of the server without ask for their frames' times.
	if err := rigs[0].trace(true); err != nil {
		return err
	}
	asked, err := t.window(ctx, rigs[0])
	if err != nil {
		return err
	}
	sum.add(&sum.asked, t.Load, &figures[0], &asked)
	return nil
}

// window measures one server once.
func (t *Tracing) window(ctx context.Context, r *rig) (Figures, error) {
	length := t.Window
	if t.duration != 0 {
		length = t.duration
	}
	r.window = window{}
	if err := r.measure(ctx, length); err != nil {
		return Figures{}, err
	}
	return r.figures(), nil
}

// add takes a pair.
func (s *traced) add(to *[]float64, load Load, without, with *Figures) {
	s.busiest = max(s.busiest, without.MachineBusy, with.MachineBusy)
	if !without.valid(load) || !with.valid(load) || without.CPU == 0 {
		s.invalid++
		return
	}
	*to = append(*to, with.CPU/without.CPU)
	s.without = append(s.without, without.CPU)
}

// lines are the figures: the median of the pairs is judged, and what it may be off by stands beside it.
func (s *traced) lines(share float64) []lab.Line {
	const name = "CPU per forwarded packet with times of all frames, more than without"
	if len(s.all) == 0 {
		return []lab.Line{lab.AtLeast(name+": pairs that are valid", 0, "", 1), lab.Information("machine busy, at most", 100*s.busiest, "%")}
	}
	more := func(quotient float64) float64 { return 100 * (quotient - 1) }
	low, high := medianInterval(s.all)
	lines := []lab.Line{
		lab.AtMost(name+", median of the pairs", more(median(s.all)), "%", 100*share),
		lab.Information("noise: the pairs' median lies above, with a confidence of 95 %", more(low), "%"),
		lab.Information("noise: and below", more(high), "%"),
		lab.Information("CPU per forwarded packet without", median(s.without), "µs"),
	}
	if len(s.asked) > 0 {
		name := "where every receiver asks for its frames' times, with reports and the kernel's stamps: more than without"
		lines = append(lines, lab.Information(name, more(median(s.asked)), "%"))
	}
	return append(lines,
		lab.Information("pairs", float64(len(s.all)), ""), lab.Exactly("pairs left out, since packets were lost or the machine was full", int64(s.invalid), "", 0),
		lab.Information("machine busy, at most", 100*s.busiest, "%"),
	)
}

// medianInterval is where the median of what some values are drawn from lies with a confidence of 95 % or more: of n independent values as many lie below it as of n coins show heads
// (Conover, Practical Nonparametric Statistics, section 3.2). Of fewer than six it is where all of them lie, which is less.
func medianInterval(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	outside := 0
	tail, term := 0.0, math.Pow(0.5, float64(n))
	for k := 0; k < n/2; k++ {
		if tail += term; tail > 0.025 {
			break
		}
		outside = k
		term *= float64(n-k) / float64(k+1)
	}
	return sorted[outside], sorted[n-1-outside]
}

// trace has all receivers ask for the times of their frames, or ask no more.
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
