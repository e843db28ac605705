package control

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// Checks returns the checks of congestion control that need no network, in the order of their numbers.
func Checks(lab.Progress) []lab.Check {
	b := newBench(results(RunVirtual))
	return append(virtual(b),
		&check{b, "quality seen by real viewers at a quarter of the rate, and the cost of allocating", seeing})
}

// LiveChecks returns the checks that need a server and clients, in real time.
func LiveChecks(progress lab.Progress) []lab.Check {
	return endToEnd(newBench(func(ctx context.Context, text string, o Options) (*Result, error) {
		progress.Say("%s end to end", filepath.Base(text))
		return results(RunLive)(ctx, text, o)
	}))
}

// results adapts a function that returns a Record to a function that returns the Result.
func results(run func(context.Context, string, Options) (*Record, error)) func(context.Context, string,
	Options) (*Result, error) {
	return func(ctx context.Context, text string, o Options) (*Result, error) {
		record, err := run(ctx, text, o)
		if err != nil {
			return nil, err
		}
		return record.Result(), nil
	}
}

// endToEnd returns the cases of virtual with a server and clients, in real time.
func endToEnd(b bench) []lab.Check {
	return []lab.Check{
		&check{b, "links of 2 to 300 Mbit/s, media that can use them (end to end)", steadyLinks},
		&check{b, "from 12.5 to 90 Mbit/s on an idle link (end to end)", idleRamp},
		&check{b, "100 Mbit/s that become 25 for ten seconds (end to end)", fallAndRise},
		&check{b, "recorded wireless links (end to end)", recordedLinks},
		&check{b, "beside TCP Cubic, and beside another receiver (end to end)", besideOthersOnce},
		&check{b, "random losses without congestion (end to end)", randomLosses},
	}
}

// virtual returns the checks that run in virtual time.
func virtual(b bench) []lab.Check {
	return []lab.Check{
		&check{b, "links of 2 to 300 Mbit/s, media that can use them (virtual time)", steadyLinks},
		&check{b, "from 12.5 to 90 Mbit/s on an idle link (virtual time)", idleRamp},
		&check{b, "100 Mbit/s that become 25 for ten seconds (virtual time)", fallAndRise},
		&check{b, "recorded wireless links (virtual time)", recordedLinks},
		&check{b, "beside TCP Cubic, and beside another receiver (virtual time)", besideOthers},
		&check{b, "random losses without congestion (virtual time)", randomLosses},
	}
}

// bench is the environment of a check: a function that runs a case, the folder of link traces, and the file of recorded
// viewers.
type bench struct {
	run             func(ctx context.Context, text string, o Options) (*Result, error)
	traces, viewers string
}

// newBench returns a bench with the recordings of the test data folder.
func newBench(run func(ctx context.Context, text string, o Options) (*Result, error)) bench {
	return bench{run, filepath.Join(lab.TestData(), "network-traces"),
		filepath.Join(lab.TestData(), "viewports", "loot.csv")}
}

// check is one claim and the function that measures it.
type check struct {
	bench   bench
	name    string
	measure func(ctx context.Context, b *bench) ([]claim.Line, error)
}

// Name implements lab.Check.
func (c *check) Name() string { return c.name }

// Run implements lab.Check.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) { return c.measure(ctx, &c.bench) }

func percent(share float64) float64 { return 100 * share }

// undecodable returns the share of sent frames that were not decodable.
func (r *Result) undecodable() float64 {
	return float64(r.FramesUndecodable) / max(float64(r.FramesSent), 1)
}

func steadyLinks(ctx context.Context, b *bench) ([]claim.Line, error) {
	var lines []claim.Line
	for _, mbps := range []int{2, 10, 50, 100, 300} {
		name := fmt.Sprintf("%d Mbit/s: ", mbps)
		r, err := b.run(ctx, fmt.Sprintf("steady:%d", mbps), DefaultOptions())
		if err != nil {
			return lines, err
		}
		lines = append(lines,
			claim.AtLeast(name+"utilisation after 10 s", percent(r.Utilisation), "%", 85),
			claim.Information(name+"media's share of capacity", percent(r.ShareOfCapacity), "%"),
			claim.AtMost(name+"queue p95", r.Queue.P95, "ms", 30),
			claim.Exactly(name+"frames undecodable", int64(r.FramesUndecodable), "", 0),
			claim.Information(name+"frames dropped whole", float64(r.FramesDroppedWhole), ""),
			claim.Information(name+"frame latency p95", r.Latency.P95, "ms"),
		)
	}
	return lines, nil
}

func idleRamp(ctx context.Context, b *bench) ([]claim.Line, error) {
	r, err := b.run(ctx, "ramp", DefaultOptions())
	if err != nil {
		return nil, err
	}
	return []claim.Line{
		claim.AtMost("time to 90 % of 90 Mbit/s", *r.SecondsToTarget, "s", 3),
		claim.Exactly("packets dropped by the queue", int64(r.PacketsDiscarded), "", 0),
		claim.Exactly("frames undecodable", int64(r.FramesUndecodable), "", 0),
		claim.Information("queue p95", r.Queue.P95, "ms"),
	}, nil
}

func fallAndRise(ctx context.Context, b *bench) ([]claim.Line, error) {
	r, err := b.run(ctx, "drop", DefaultOptions())
	if err != nil {
		return nil, err
	}
	return []claim.Line{
		claim.AtMost("queue back under 50 ms", *r.QueueSeconds, "s", 1.5),
		claim.Exactly("frames undecodable", int64(r.FramesUndecodable), "", 0),
		claim.AtMost("quality lower", *r.QualitySeconds, "s", 0.5),
		claim.AtMost("80 % of the new capacity", *r.RecoverySeconds, "s", 5),
		claim.Information("packets dropped by the queue", float64(r.PacketsDiscarded), ""),
		claim.Information("frames dropped whole", float64(r.FramesDroppedWhole), ""),
	}, nil
}

func recordedLinks(ctx context.Context, b *bench) ([]claim.Line, error) {
	files, err := filepath.Glob(filepath.Join(b.traces, "*.csv"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return []claim.Line{claim.Skip("recorded links", fmt.Sprintf("no traces in %s; set %s", b.traces,
			lab.TestDataVariable))}, nil
	}
	var lines []claim.Line
	mean := 0.0
	for _, file := range files {
		name := filepath.Base(file) + ": "
		r, err := b.run(ctx, "trace:"+file, DefaultOptions())
		if err != nil {
			return lines, err
		}
		mean += r.Utilisation / float64(len(files))
		lines = append(lines,
			claim.Information(name+"utilisation", percent(r.Utilisation), "%"),
			claim.Information(name+"media's share of capacity", percent(r.ShareOfCapacity), "%"),
			claim.AtMost(name+"frame latency p95 while the link is up", r.Latency.P95, "ms", 150),
		)
		if r.RecoverySeconds != nil {
			lines = append(lines, claim.AtMost(name+"longest recovery after an outage", *r.RecoverySeconds, "s", 3))
		}
		lines = append(lines,
			claim.Information(name+"frames undecodable", percent(r.undecodable()), "%"),
			claim.Information(name+"frames dropped whole", float64(r.FramesDroppedWhole), ""),
			claim.Information(name+"queue p95", r.Queue.P95, "ms"),
		)
	}
	return append(lines, claim.AtLeast("mean utilisation", percent(mean), "%", 75)), nil
}

func randomLosses(ctx context.Context, b *bench) ([]claim.Line, error) {
	var lines []claim.Line
	for _, path := range []struct {
		rtt       time.Duration
		decodable [3]float64
	}{{20 * time.Millisecond, [3]float64{99.9, 99.5, 98}}, {150 * time.Millisecond, [3]float64{99.5, 98, 95}}} {
		for i, loss := range []int{1, 5, 10} {
			name := fmt.Sprintf("%d %%, %v: ", loss, path.rtt)
			o := DefaultOptions()
			o.RTT = path.rtt
			r, err := b.run(ctx, fmt.Sprintf("loss:%d", loss), o)
			if err != nil {
				return lines, err
			}
			estimate := claim.AtLeast(name+"mean estimate, of the link", percent(r.EstimateShare), "%", 80)
			if loss > 5 {
				estimate = claim.Information(estimate.Name, estimate.Figure, estimate.Unit)
			}
			lines = append(lines, estimate,
				claim.AtLeast(name+"frames decodable", percent(1-r.undecodable()), "%", path.decodable[i]),
				claim.Information(name+"frames dropped whole", float64(r.FramesDroppedWhole), ""),
				claim.Information(name+"repair overhead", percent(r.RepairOverhead), "%"),
				claim.Information(name+"frame latency p95", r.Latency.P95, "ms"),
			)
		}
	}
	return lines, nil
}
