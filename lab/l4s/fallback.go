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
		if ours.FallbackSeconds != nil {
			detected = claim.AtMost(name+"detected", *ours.FallbackSeconds, "s", 0.5)
		}
		lines = append(lines, detected,
			claim.AtMost(name+"difference of the rate from that with gcc",
				percent(math.Abs(ours.Utilisation/theirs.Utilisation-1)), "%", 5),
			claim.Information(name+"utilisation", percent(ours.Utilisation), "%"),
			claim.Information(name+"utilisation with gcc", percent(theirs.Utilisation), "%"),
		)
	}
	return append(lines, b.late(results)...), nil
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
	trials := []trial{{"cubic:1", o}}
	if !b.live {
		for seed := range uint64(quietSeeds) {
			o := options()
			o.Seed, o.Duration = 1+seed, quietTime
			trials = append(trials, trial{"steady:100", o})
		}
	}
	results, err := b.run(ctx, trials...)
	if err != nil {
		return nil, err
	}
	r := results[0]
	detected := claim.Fail(b.named("classic queue detected"), "packets left as ECT(0) at no time")
	if seconds, changed := classicAfter(r); changed {
		detected = claim.AtMost(detected.Name, seconds, "s", 2)
	}
	lines := []claim.Line{detected,
		claim.AtLeast(b.named("Cubic's share of fair"), *r.Others.ShareOfFair, "", 0.7),
		claim.Information(b.named("own share of fair"), *r.ShareOfFair, ""),
	}
	if b.live {
		return append(lines, b.late(results)...), nil
	}
	alarms := int64(0)
	for _, r := range results[1:] {
		if _, changed := classicAfter(r); changed {
			alarms++
		}
	}
	return append(lines, claim.Exactly(b.named("DualPI2 taken for a classic queue, %d seeds", quietSeeds), alarms, "",
		0)), nil
}

// classicAfter returns the time from the first packet until packets left as ECT(0), in seconds; false if they never
// did.
func classicAfter(r *control.Result) (float64, bool) {
	i := slices.IndexFunc(r.Codepoints, func(c control.CodepointFigures) bool {
		return c.Codepoint == ecn.ECT0.String()
	})
	if i < 0 {
		return 0, false
	}
	return r.Codepoints[i].Seconds - r.Codepoints[0].Seconds, true
}
