package l4s

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/test/claim"
)

func links(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	rates := []int{10, 50, 100, 300}
	var trials []trial
	for _, mbps := range rates {
		trials = append(trials, trial{fmt.Sprintf("steady:%d", mbps), options()})
	}
	results, err := b.run(ctx, trials...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		name := b.named("%d Mbit/s: ", rates[i])
		lines = append(lines,
			claim.AtLeast(name+"utilisation after 10 s", r.least(utilisation), "%", b.utilisation),
			r.lowLatency(name, b.queue),
			r.undecodable(name),
			claim.Information(name+"media's share of capacity",
				r.median(func(r *control.Result) float64 { return percent(r.ShareOfCapacity) }), "%"),
			claim.Information(name+"frames dropped whole", r.median(droppedWhole), ""),
			claim.Information(name+"longest queue", r.median(queueMax), "ms"),
		)
	}
	return b.withConditions(lines, results), nil
}

// latency measures frames that use all of a link: the last packet leaves a frame interval, 33 ms, after the first.
func latency(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"steady:100", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("100 Mbit/s, 20 ms: ")
	return b.withConditions([]claim.Line{
		claim.AtMost(name+"frame latency p95", r.most(latencyP95), "ms", 48),
		claim.Information(name+"frame latency p50",
			r.median(func(r *control.Result) float64 { return r.Latency.P50 }), "ms"),
		claim.Information(name+"frame latency p99",
			r.median(func(r *control.Result) float64 { return r.Latency.P99 }), "ms"),
	}, results), nil
}

func ramp(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"ramp", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("")
	return b.withConditions([]claim.Line{
		claim.AtMost(name+"time to 90 % of 90 Mbit/s (paper 000: 10 s)",
			r.most(func(r *control.Result) float64 { return *r.SecondsToTarget }), "s", 1),
		claim.AtMost(name+"longest queue", r.most(queueMax), "ms", 10),
		claim.Information(name+"frames undecodable", r.median(lost), ""),
	}, results), nil
}

// cliff measures a fall. Marks begin 11 ms after its beginning, the sender knows of them 25 ms later, and the rate at
// the queue falls after 10 ms more: by then 72 ms of the new rate wait, whatever the sender does.
func cliff(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"cliff", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("")
	return b.withConditions([]claim.Line{
		claim.AtMost(name+"longest queue", r.most(queueOfCliff), "ms", 100),
		claim.AtMost(name+"queue below 5 ms again",
			r.most(func(r *control.Result) float64 { return r.Cliff.ShortAfter }), "s", 0.3),
		r.undecodable(name),
		claim.Information(name+"packets dropped by the queue",
			r.median(func(r *control.Result) float64 { return float64(r.PacketsDiscarded) }), ""),
		claim.Information(name+"frames dropped whole", r.median(droppedWhole), ""),
	}, results), nil
}

func recordedLinks(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	files, err := filepath.Glob(filepath.Join(b.traces, "*.csv"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return []claim.Line{claim.Skip(b.named("recorded links"), fmt.Sprintf("no traces in %s; set %s", b.traces,
			lab.TestDataVariable))}, nil
	}
	var trials []trial
	for _, file := range files {
		trials = append(trials, trial{"trace:" + file, options()})
	}
	results, err := b.run(ctx, trials...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		name := b.named("%s: ", filepath.Base(files[i]))
		lines = append(lines,
			claim.AtLeast(name+"utilisation", r.least(utilisation), "%", 75),
			claim.AtMost(name+"frame latency p95 while the link is up", r.most(latencyP95), "ms", 70),
			claim.Information(name+"queue p95",
				r.median(func(r *control.Result) float64 { return r.Queue.P95 }), "ms"),
			claim.Information(name+"frames undecodable", r.median(lost), ""),
		)
	}
	return b.withConditions(lines, results), nil
}

func uplink(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"uplink:20", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("")
	return b.withConditions([]claim.Line{
		claim.AtLeast(name+"utilisation after 10 s", r.least(utilisation), "%", 90),
		r.lowLatency(name, 3),
		claim.Information(name+"frames undecodable", r.median(lost), ""),
	}, results), nil
}

// The room end to end: roomBPS is the rate of each hop, in bit/s, and roomTime the length of the run. Two cores do not
// carry eight hops of 100 Mbit/s, whose estimates still grow when the other flow joins.
const (
	roomBPS  = 25e6
	roomTime = time.Minute
)

func room(ctx context.Context, b *bench) ([]claim.Line, error) {
	o, name := options(), b.named("")
	if b.live {
		o.LinkBPS, o.Duration = roomBPS, roomTime
		name = b.named("%g Mbit/s per hop: ", roomBPS/1e6)
	}
	results, err := b.run(ctx, trial{"room:4", o})
	if err != nil {
		return nil, err
	}
	r := results[0]
	return b.withConditions([]claim.Line{
		claim.AtLeast(name+"Jain's index of the downlinks",
			r.least(func(r *control.Result) float64 { return *r.JainIndex }), "", 0.98),
		claim.AtMost(name+"largest change of another hop's estimate while one uplink is marked",
			r.most(func(r *control.Result) float64 { return percent(r.Room.LargestChange) }), "%", 2),
		claim.Information(name+"estimate of the marked uplink before",
			r.median(func(r *control.Result) float64 { return r.Room.Hops[0].Before }), "Mbit/s"),
		claim.Information(name+"estimate of the marked uplink while marked",
			r.median(func(r *control.Result) float64 { return r.Room.Hops[0].WhileMarks }), "Mbit/s"),
	}, results), nil
}
