package l4s

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/test/claim"
)

// simulation runs a case of package control.
type simulation func(ctx context.Context, text string, o control.Options) (*control.Result, error)

// bench is the environment of a check.
type bench struct {
	// kind begins the names of lines.
	kind string
	// live is set if cases run end to end.
	live bool
	// traces is the folder of link traces.
	traces string
	// parallel is the number of cases that run at the same time, on as many goroutines.
	parallel int
	// seeds is the number of runs of each trial, with the seed of its options and the seeds that follow.
	seeds    int
	simulate simulation
	progress lab.Progress
	// utilisation is the least utilisation of a link, in %, and queue the largest 99th percentile of waiting times in
	// the low-latency queue, in ms. DualPI2 marks all packets from 1.2 ms on (RFC 9332 appendix A.1).
	utilisation, queue float64
}

// newVirtual returns a bench in virtual time.
func newVirtual(traces string, simulate simulation) *bench {
	return &bench{kind: "virtual time", traces: traces, parallel: runtime.GOMAXPROCS(0), seeds: 5,
		simulate: simulate, utilisation: 95, queue: 2}
}

// newLive returns a bench end to end. The queue's bound is that of an emulated network that shares the machine with
// senders and receivers.
func newLive(traces string, simulate simulation, progress lab.Progress) *bench {
	return &bench{kind: "end to end", live: true, traces: traces, parallel: 1, seeds: 1, simulate: simulate,
		progress: progress, utilisation: 90, queue: 3}
}

// named returns the name of a line, or the beginning of names.
func (b *bench) named(format string, values ...any) string {
	return b.kind + ", " + fmt.Sprintf(format, values...)
}

// trial is a case of package control with its options.
type trial struct {
	text    string
	options control.Options
}

// run runs each trial bench.seeds times, and returns the runs in the order of the trials. After an error, no further
// run begins.
func (b *bench) run(ctx context.Context, trials ...trial) ([]runs, error) {
	return b.repeat(ctx, b.seeds, trials...)
}

// repeat is run with a number of seeds.
func (b *bench) repeat(ctx context.Context, seeds int, trials ...trial) ([]runs, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]runs, len(trials))
	for i := range results {
		results[i] = make(runs, seeds)
	}
	var begun atomic.Int64
	var workers sync.WaitGroup
	total := seeds * len(trials)
	for range min(b.parallel, total) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(begun.Add(1)) - 1
				if i >= total {
					return
				}
				t, seed := trials[i/seeds], i%seeds
				t.options.Seed += uint64(seed)
				r, err := b.undisturbed(t.text, func() (*control.Result, error) {
					return b.simulate(ctx, t.text, t.options)
				})
				if err != nil {
					cancel(fmt.Errorf("%s, seed %d: %w", t.text, t.options.Seed, err))
				}
				results[i/seeds][seed] = r
			}
		})
	}
	workers.Wait()
	return results, context.Cause(ctx)
}

// options returns the conditions of most claims: 20 ms of round trip and a DualPI2 queue. The link of most cases has
// 100 Mbit/s.
func options() control.Options {
	o := control.DefaultOptions()
	o.Estimator.Controller, o.Queue = congestion.ControllerAuto, netem.QueueDualPI2
	return o
}

// attempts bounds the runs of a case end to end.
const attempts = 3

// undisturbed runs a case, and repeats the run if the machine was disturbed, which a thread unrelated to the case
// measures (router.Validity). The last attempt counts.
func (b *bench) undisturbed(text string, run func() (*control.Result, error)) (*control.Result, error) {
	for discarded := 0; ; discarded++ {
		r, err := run()
		if err != nil || r.Emulation == nil {
			return r, err
		}
		r.Emulation.Discarded = discarded
		if r.Emulation.Disturbance == "" || discarded == attempts-1 {
			return r, nil
		}
		b.progress.Say("  %s is repeated: the machine was disturbed: %s", filepath.Base(text), r.Emulation.Disturbance)
	}
}

// withConditions appends the lines of the conditions of runs: end to end those of the emulated networks, and in virtual
// time the number of seeds.
func (b *bench) withConditions(lines []claim.Line, results []runs) []claim.Line {
	if !b.live {
		return append(lines, claim.Information(b.named("seeds of each case, of which the worst counts"),
			float64(b.seeds), ""))
	}
	all := slices.Concat(results...)
	late, valid, discarded := 0.0, 0, 0
	for _, r := range all {
		e := r.Emulation
		if e == nil {
			continue
		}
		late, discarded = max(late, e.LateP95), discarded+e.Discarded
		if e.Valid {
			valid++
		}
	}
	return append(lines,
		claim.Exactly(b.named("runs with an emulated network in time"), int64(valid), "", int64(len(all))),
		claim.Information(b.named("runs discarded because the machine was disturbed"), float64(discarded), ""),
		claim.Information(b.named("lateness of the emulated network, p95"), late, "ms"))
}

// measurement measures a claim on a bench.
type measurement func(ctx context.Context, b *bench) ([]claim.Line, error)

// measured returns the lines of a measurement, or a skipped line if this machine cannot emulate networks.
func (b *bench) measured(ctx context.Context, measure measurement) ([]claim.Line, error) {
	lines, err := measure(ctx, b)
	if errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN) {
		return []claim.Line{claim.Skip(b.kind, err.Error())}, nil
	}
	return lines, err
}
