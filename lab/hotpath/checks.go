package hotpath

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath/machinelimit"
	"github.com/volsfu/volsfu/test/claim"
)

// Checks returns the checks of the hot path, in the order of their numbers. The checks measure the server program in
// the folder of this program.
func Checks(progress lab.Progress) []lab.Check {
	command, err := FanoutCommand()
	b := bench{progress: progress, compare: command, broken: err, forward: Forward, limit: machinelimit.Measure}
	return []lab.Check{
		&Comparison{bench: b, Runs: 3, Cases: []ComparisonCase{
			{Name: "10 receivers", Load: DefaultLoad(), Pacing: PacingOff, Ratio: 1. / 4, OfCeiling: 1.8},
			{Name: "10 receivers, paced", Load: DefaultLoad(), Pacing: PacingOn, Ratio: 1. / 3},
			{Name: "50 receivers", Load: loadOf(50, 10), Pacing: PacingOff, Ratio: 1. / 4},
			{Name: "10 receivers, Pion's batched sockets", Load: DefaultLoad(), Pacing: PacingOff, Batched: true},
			{Name: "50 receivers, Pion's batched sockets", Load: loadOf(50, 10), Pacing: PacingOff, Batched: true},
		}},
		&Comparison{bench: b, Runs: 3, Cases: []ComparisonCase{{Name: "1 receiver", Load: loadOf(1, 50),
			Pacing: PacingOff, Ratio: 1. / 2}}},
		&Allocations{bench: b, Load: DefaultLoad(), Part: 0.2, PerPacket: 0.005, Time: 20 * time.Second},
		&Residence{bench: b, Runs: 3, Load: DefaultLoad(), Share: 0.5, P50: 200 * time.Microsecond,
			P99: time.Millisecond, P999: 3 * time.Millisecond},
		&Burst{bench: b, Load: Load{Publishers: 1, Receivers: 1, Tracks: 1, Qualities: 1, Mbps: 500, FrameRate: 30}},
		&Memory{bench: b, More: 5, CacheBytes: 48 << 20, CacheAge: 6 * time.Second, Growth: 10, Load: Load{
			Publishers: 10, Receivers: 10, Together: true, Tracks: 15, Qualities: 3, Mbps: 100, FrameRate: 30,
			Spread: defaultSpread,
		}},
		&Unwatched{bench: b, Load: loadOf(0, 50)},
		&Repair{bench: b, Recovered: 99.9, PerLoss: 1.1, Load: Load{
			Publishers: 1, Receivers: 1, Tracks: 4, Qualities: 1, Mbps: 100, FrameRate: 30, Spread: defaultSpread,
			Loss: 0.02, RTT: 20 * time.Millisecond,
		}},
		&Smooth{bench: b, Runs: 3, Load: DefaultLoad(), Ratio: 1.5},
	}
}

// loadOf returns the default load with the given receivers and total Mbit/s.
func loadOf(receivers int, mbps float64) Load {
	l := DefaultLoad()
	l.Receivers, l.Mbps = receivers, mbps
	return l
}

// bench holds the dependencies of the checks.
type bench struct {
	progress lab.Progress
	// compare is the command of the server to compare with. If there is none, broken is the reason.
	compare []string
	broken  error
	// arguments are additional flags of the server. serverBin is the server's program; empty selects volsfu in the
	// folder of this program.
	arguments []string
	serverBin string
	// duration replaces the duration of runs if not 0.
	duration time.Duration
	forward  func(context.Context, Options) (*Result, error)
	limit    func(context.Context) (*machinelimit.Limit, error)
}

// runTime is the measured time of a server in one run.
const runTime = 4 * time.Second

// attempts bounds the repetitions of a run on a busy machine.
const attempts = 3

// run measures once, and repeats the run if the machine was busy. Packets lost by the server do not cause a repetition.
// The last attempt counts. The machine's limit is measured in the same run.
func (b *bench) run(ctx context.Context, o Options) (*Result, error) {
	o.Progress, o.ServerBin = b.progress, b.serverBin
	o.Arguments = append(o.Arguments, b.arguments...)
	if o.Duration == 0 {
		o.Duration = runTime
	}
	if b.duration != 0 {
		o.Duration = b.duration
	}
	for repeated := 0; ; repeated++ {
		limit, err := b.limit(ctx)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
		result, err := b.forward(ctx, o)
		if err != nil {
			return nil, err
		}
		result.Beside(limit)
		result.Repeated = repeated
		if !result.disturbed() || repeated == attempts-1 {
			return result, nil
		}
		b.progress.Say("disturbed: %s", result.state())
	}
}

// state summarises the conditions of a run's validity.
func (r *Result) state() string {
	text := fmt.Sprintf("machine %.0f %% busy, %d packets and %d frames lost", 100*r.MachineBusy, r.PacketsLost,
		r.FramesLost)
	if r.Compare != nil {
		text += fmt.Sprintf("; %.0f %%, %d and %d with the other server", 100*r.Compare.MachineBusy,
			r.Compare.PacketsLost, r.Compare.FramesLost)
	}
	return text
}

// validity returns the lines about the validity of runs and the conditions of validity.
func validity(prefix string, runs ...*Result) []claim.Line {
	awoken, repeated, busiest, lost := 0, 0, 0.0, uint64(0)
	for _, r := range runs {
		repeated += r.Repeated
		if r.ProcessorsAwake {
			awoken++
		}
		for _, f := range []*Figures{&r.Figures, r.Compare} {
			if f != nil {
				busiest, lost = max(busiest, f.MachineBusy), lost+f.PacketsLost
			}
		}
	}
	return []claim.Line{
		claim.Exactly(prefix+"valid runs", int64(Runs(runs).Valid()), "", int64(len(runs))),
		claim.Information(prefix+"runs discarded because the machine was busy", float64(repeated), ""),
		claim.Information(prefix+"runs in which idle processors stayed awake", float64(awoken), ""),
		claim.Information(prefix+"machine busy, at most", 100*busiest, "%"),
		claim.Information(prefix+"packets lost in all runs", float64(lost), ""),
	}
}

// two returns the lines of the median and the 99th percentile of a time, in a unit of the given number of microseconds;
// none if the time was not measured.
func two(name string, q *Quantiles, unit string, microseconds float64) []claim.Line {
	if q == nil {
		return nil
	}
	return []claim.Line{claim.Information(name+", p50", q.P50/microseconds, unit),
		claim.Information(name+", p99", q.P99/microseconds, unit)}
}

// unpaced converts the error of a server without pacing to a skipped line and returns other errors.
func unpaced(name string, err error) ([]claim.Line, error) {
	if errors.Is(err, ErrPacing) {
		return []claim.Line{claim.Skip(name, err.Error())}, nil
	}
	return nil, err
}
