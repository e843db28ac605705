package l4s

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/test/claim"
)

// bleached measures paths that begin to change or drop the ECN field at 10 s. The rates are those from 15 s on.
func bleached(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	kinds := []string{netem.ECNClear, netem.ECNECT0, netem.ECNMark, netem.ECNDrop}
	gcc := options()
	gcc.Estimator.Controller = congestion.ControllerGCC
	var trials []trial
	for _, kind := range kinds {
		trials = append(trials, trial{"bleach:" + kind, options()}, trial{"bleach:" + kind, gcc})
	}
	results, err := b.run(ctx, trials...)
	if err != nil {
		return nil, err
	}
	for i, kind := range kinds {
		ours, theirs := results[2*i], results[2*i+1]
		name := b.named("%s: ", kind)
		detected := claim.Fail(name+"detected", "no packet was ECN-capable before")
		if !slices.ContainsFunc(ours, func(r *control.Result) bool { return r.FallbackSeconds == nil }) {
			detected = claim.AtMost(name+"detected",
				ours.most(func(r *control.Result) float64 { return *r.FallbackSeconds }), "s", 0.5)
		}
		difference := 0.0
		for seed := range ours {
			difference = max(difference, math.Abs(ours[seed].Utilisation/theirs[seed].Utilisation-1))
		}
		lines = append(lines, detected,
			claim.AtMost(name+"difference of the rate from that with gcc", percent(difference), "%", 5),
			claim.Information(name+"utilisation", ours.median(utilisation), "%"),
			claim.Information(name+"utilisation with gcc", theirs.median(utilisation), "%"),
		)
	}
	return b.withConditions(lines, results), nil
}

const (
	// quietSeeds is the number of runs that must not detect a classic queue, and quietTime the length of each.
	quietSeeds = 20
	quietTime  = 20 * time.Second
)

// classicQueue measures a receiver beside a Cubic flow with classic ECN in one CoDel queue (RFC 9331 section 4.3). In
// virtual time, it also counts the DualPI2 queues that are taken for a classic queue.
func classicQueue(ctx context.Context, b *bench) ([]claim.Line, error) {
	o := options()
	o.Queue, o.CubicECN, o.LinkBPS = netem.QueueCoDel, true, 100e6
	results, err := b.run(ctx, trial{"cubic:1", o})
	if err != nil {
		return nil, err
	}
	r := results[0]
	detected := claim.Fail(b.named("classic queue detected after the first own mark"),
		"packets left as ECT(0) at no time")
	if seconds := r.most(sinceMark); !math.IsInf(seconds, 1) {
		detected = claim.AtMost(detected.Name, seconds, "s", 2)
	}
	lines := b.withConditions([]claim.Line{detected,
		claim.Information(b.named("the same, median"), r.median(sinceMark), "s"),
		claim.Information(b.named("classic queue detected after the first packet"), r.most(classicAfter), "s"),
		claim.AtLeast(b.named("Cubic's share of fair"), r.least(othersOfFair), "", 0.7),
		claim.Information(b.named("own share of fair"), r.median(ofFair), ""),
	}, results)
	if b.live {
		return lines, nil
	}
	o = options()
	o.Duration = quietTime
	quiet, err := b.repeat(ctx, quietSeeds, trial{"steady:100", o})
	if err != nil {
		return nil, err
	}
	alarms := int64(0)
	for _, r := range quiet[0] {
		if !math.IsInf(classicAfter(r), 1) {
			alarms++
		}
	}
	return append(lines, claim.Exactly(b.named("DualPI2 taken for a classic queue, %d seeds", quietSeeds), alarms, "",
		0)), nil
}

// classicAfter returns the time from the first packet until packets left as ECT(0), in seconds; infinity if they never
// did.
func classicAfter(r *control.Result) float64 {
	if len(r.Codepoints) == 0 {
		return math.Inf(1)
	}
	return classicAt(r) - r.Codepoints[0].Seconds
}

// sinceMark returns the time from the first mark of an own packet until packets left as ECT(0), in seconds; infinity if
// they never did. Before the first mark nothing distinguishes the queue from one without ECN, and GCC governs the rate.
func sinceMark(r *control.Result) float64 {
	if r.FirstMarkSeconds == nil {
		return math.Inf(1)
	}
	return classicAt(r) - *r.FirstMarkSeconds
}

// classicAt returns the time from which packets left as ECT(0), in seconds; infinity if they never did.
func classicAt(r *control.Result) float64 {
	i := slices.IndexFunc(r.Codepoints, func(c control.CodepointFigures) bool {
		return c.Codepoint == ecn.ECT0.String()
	})
	if i < 0 {
		return math.Inf(1)
	}
	return r.Codepoints[i].Seconds
}
