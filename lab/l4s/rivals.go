package l4s

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// paperMarked is the rate of L4S flows beyond which the queue of paper 000 marks, in Mbit/s: half of its link.
	paperMarked = 100.0
	// paperLargest is the largest estimate of the paper's senders, in Mbit/s.
	paperLargest = 90.0
)

// beside returns trials of a case with each number of flows.
func beside(format string, flows []int, o control.Options) (trials []trial) {
	for _, n := range flows {
		trials = append(trials, trial{fmt.Sprintf(format, n), o})
	}
	return trials
}

// paperOptions returns the conditions of paper 000: its queue, and its bounds of the estimate.
func paperOptions() control.Options {
	o := options()
	o.Queue, o.Estimator.Profile = netem.QueuePaper000, "paper000"
	return o
}

// paperBesidePrague measures shares that the paper's sender does not reach.
func paperBesidePrague(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	flows, paper, least := []int{1, 2, 3}, []float64{58, 15, 12.5}, []float64{42, 28, 21}
	results, err := b.run(ctx, beside("prague:%d", flows, paperOptions())...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		name, fair := b.named("%d Prague: ", flows[i]), paperMarked/float64(flows[i]+1)
		lines = append(lines,
			r.between(fmt.Sprintf("%srate (paper 000: %g)", name, paper[i]),
				func(r *control.Result) float64 { return ofFair(r) * fair }, "Mbit/s", least[i], 1.25*fair),
			claim.Information(name+"the others' share of fair", r.median(othersOfFair), ""),
			claim.Information(name+"frames undecodable", r.median(lost), ""),
		)
	}
	return b.withConditions(lines, results), nil
}

// paperBesideCubic measures the receiver in the paper's priority class, with Cubic in the other class. The server sends
// a frame as soon as it is captured, so the latency of frames is that of the transport.
func paperBesideCubic(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	flows := []int{1, 2, 3}
	results, err := b.run(ctx, beside("cubic:%d", flows, paperOptions())...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		name := b.named("%d Cubic: ", flows[i])
		lines = append(lines,
			claim.AtLeast(name+"mean estimate",
				r.least(func(r *control.Result) float64 { return 2 * paperMarked * r.EstimateShare }), "Mbit/s",
				paperLargest),
			claim.AtMost(name+"transport latency p95", r.most(latencyP95), "ms", 32),
			r.undecodable(name),
		)
	}
	return b.withConditions(lines, results), nil
}

func besidePrague(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	flows := []int{1, 2, 3}
	results, err := b.run(ctx, beside("prague:%d", flows, options())...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		name := b.named("%d Prague: ", flows[i])
		lines = append(lines,
			r.between(name+"share of fair", ofFair, "", 0.85, 1.25),
			r.lowLatency(name, b.queue),
			claim.Information(name+"the others' share of fair", r.median(othersOfFair), ""),
		)
	}
	return b.withConditions(lines, results), nil
}

// roundTrips measures receivers whose round trip differs from that of their competitors, 25 ms. A flow that reacts once
// in its own round trip would have a share in inverse proportion to it.
func roundTrips(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	flows := []int{1, 3}
	var trials []trial
	for _, ms := range []time.Duration{5, 10, 50, 100} {
		o := options()
		o.RTT, o.RivalRTT = ms*time.Millisecond, 25*time.Millisecond
		trials = append(trials, beside("prague:%d", flows, o)...)
	}
	results, err := b.run(ctx, trials...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		rtt := trials[i].options.RTT
		name := b.named("%v, %d Prague at 25 ms: share of fair", rtt, flows[i%len(flows)])
		line := r.between(name, ofFair, "", 0.75, 1.35)
		if rtt > 50*time.Millisecond {
			line = claim.AtLeast(name, r.least(ofFair), "", 0.5)
		}
		lines = append(lines, line)
	}
	return b.withConditions(lines, results), nil
}

// besideCubic measures a receiver beside classic flows. Audio is measured in virtual time only.
func besideCubic(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	flows, o := []int{1, 3}, options()
	o.LinkBPS, o.Audio = 100e6, !b.live
	results, err := b.run(ctx, beside("cubic:%d", flows, o)...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		name := b.named("%d Cubic: ", flows[i])
		lines = append(lines,
			r.between(name+"share of fair", ofFair, "", 0.75, 1.5),
			r.lowLatency(name, b.queue),
		)
		if o.Audio {
			lines = append(lines, claim.AtMost(name+"audio p99 above the empty path",
				r.most(func(r *control.Result) float64 { return *r.AudioQueue }), "ms", 3))
		}
		lines = append(lines,
			claim.Information(name+"the others' share of fair", r.median(othersOfFair), ""),
			claim.Information(name+"classic queue p99",
				r.median(func(r *control.Result) float64 { return r.Classic.P99 }), "ms"),
		)
	}
	return b.withConditions(lines, results), nil
}
