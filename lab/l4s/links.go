package l4s

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/volsfu/volsfu/lab"
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
			claim.AtLeast(name+"utilisation after 10 s", percent(r.Utilisation), "%", b.utilisation),
			lowLatency(name, r, b.queue),
			undecodable(name, r),
			claim.Information(name+"media's share of capacity", percent(r.ShareOfCapacity), "%"),
			claim.Information(name+"frames dropped whole", float64(r.FramesDroppedWhole), ""),
			claim.Information(name+"longest queue", r.Queue.Max, "ms"),
		)
	}
	return append(lines, b.late(results)...), nil
}

// latency measures frames that use all of a link: the last packet leaves a frame interval, 33 ms, after the first.
func latency(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"steady:100", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("100 Mbit/s, 20 ms: ")
	return append([]claim.Line{
		claim.AtMost(name+"frame latency p95", r.Latency.P95, "ms", 48),
		claim.Information(name+"frame latency p50", r.Latency.P50, "ms"),
		claim.Information(name+"frame latency p99", r.Latency.P99, "ms"),
	}, b.late(results)...), nil
}

func ramp(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"ramp", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("")
	return append([]claim.Line{
		claim.AtMost(name+"time to 90 % of 90 Mbit/s (paper 000: 10 s)", *r.SecondsToTarget, "s", 1),
		claim.AtMost(name+"longest queue", r.Queue.Max, "ms", 10),
		claim.Information(name+"frames undecodable", float64(r.FramesUndecodable), ""),
	}, b.late(results)...), nil
}

// cliff measures a fall. Marks begin 11 ms after its beginning, the sender knows of them 25 ms later, and the rate at
// the queue falls after 10 ms more: by then 72 ms of the new rate wait, whatever the sender does.
func cliff(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"cliff", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("")
	return append([]claim.Line{
		claim.AtMost(name+"longest queue", r.Cliff.LongestQueue, "ms", 100),
		claim.AtMost(name+"queue below 5 ms again", r.Cliff.ShortAfter, "s", 0.3),
		undecodable(name, r),
		claim.Information(name+"packets dropped by the queue", float64(r.PacketsDiscarded), ""),
		claim.Information(name+"frames dropped whole", float64(r.FramesDroppedWhole), ""),
	}, b.late(results)...), nil
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
	mean := 0.0
	for i, r := range results {
		mean += r.Utilisation / float64(len(results))
		name := b.named("%s: ", filepath.Base(files[i]))
		lines = append(lines,
			claim.AtMost(name+"frame latency p95 while the link is up", r.Latency.P95, "ms", 70),
			claim.Information(name+"utilisation", percent(r.Utilisation), "%"),
			claim.Information(name+"queue p95", r.Queue.P95, "ms"),
			claim.Information(name+"frames undecodable", float64(r.FramesUndecodable), ""),
		)
	}
	lines = append(lines, claim.AtLeast(b.named("mean utilisation"), percent(mean), "%", 75))
	return append(lines, b.late(results)...), nil
}

func uplink(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"uplink:20", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("")
	return append([]claim.Line{
		claim.AtLeast(name+"utilisation after 10 s", percent(r.Utilisation), "%", 90),
		lowLatency(name, r, 3),
		claim.Information(name+"frames undecodable", float64(r.FramesUndecodable), ""),
	}, b.late(results)...), nil
}

func room(ctx context.Context, b *bench) ([]claim.Line, error) {
	results, err := b.run(ctx, trial{"room:4", options()})
	if err != nil {
		return nil, err
	}
	r, name := results[0], b.named("")
	marked := r.Room.Hops[0]
	return append([]claim.Line{
		claim.AtLeast(name+"Jain's index of the downlinks", *r.JainIndex, "", 0.98),
		claim.AtMost(name+"largest change of another hop's estimate while one uplink is marked",
			percent(r.Room.LargestChange), "%", 2),
		claim.Information(name+"estimate of the marked uplink before", marked.Before, "Mbit/s"),
		claim.Information(name+"estimate of the marked uplink while marked", marked.WhileMarks, "Mbit/s"),
	}, b.late(results)...), nil
}
