package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

var errEarly = errors.New("the run ended before the competitors could be measured")

// besideOthers measures the receiver's share beside competitors and the effect on the competitors, including ramps.
// Figures are means over rampRuns runs.
func besideOthers(ctx context.Context, b *bench) ([]claim.Line, error) {
	return b.beside(ctx, rampRuns)
}

// besideOthersOnce is besideOthers with one run for each mean: in real time, twelve means of eight runs of 22 s would
// take 35 minutes.
func besideOthersOnce(ctx context.Context, b *bench) ([]claim.Line, error) {
	return b.beside(ctx, 1)
}

func (b *bench) beside(ctx context.Context, runs int) ([]claim.Line, error) {
	var lines []claim.Line
	// A bandwidth-delay product of 200 Mbit/s and 20 ms is 20 ms of the link's rate.
	for _, queue := range []struct{ option, name string }{{"fq", "FQ"}, {"fifo:20", "FIFO of 1 BDP"},
		{"fifo:40", "FIFO of 2 BDP"}} {
		for _, flows := range []int{1, 3} {
			name := fmt.Sprintf("%d Cubic, %s: ", flows, queue.name)
			o := DefaultOptions()
			o.Queue = queue.option
			shared, err := b.shares(ctx, flows, o, runs)
			if err != nil {
				return lines, err
			}
			share := claim.Information(name+"share of fair"+meanOf(runs), shared.ofFair, "")
			if queue.option == "fq" {
				share = claim.AtLeast(share.Name, share.Figure, "", 0.5)
			}
			lines = append(lines, share,
				claim.AtMost(name+"frames undecodable"+meanOf(runs), percent(shared.undecodable), "%", 0.1))
			if runs > 1 {
				worst := fmt.Sprintf("%sframes undecodable, worst of %d runs", name, runs)
				lines = append(lines, claim.Information(worst, percent(shared.worst), "%"))
			}
			ramps, err := b.ramps(ctx, flows, o, runs)
			if err != nil {
				return lines, err
			}
			lines = append(lines, ramps.lines(name)...)
		}
	}
	r, err := b.run(ctx, "fair:2", DefaultOptions())
	if err != nil {
		return lines, err
	}
	return append(lines,
		claim.AtLeast("two receivers: Jain's index", *r.JainIndex, "", 0.95),
		claim.AtMost("two receivers: frames undecodable", percent(r.undecodable()), "%", 0.1),
	), nil
}

// shares summarises several runs beside Cubic.
type shares struct {
	// ofFair is the mean share of the fair rate; undecodable is the mean share of undecodable frames.
	ofFair, undecodable float64
	// worst is the largest share of undecodable frames of one run.
	worst float64
}

// shares makes several runs beside Cubic. The phase of Cubic's losses determines how many frames meet a full queue: in
// a single run none, or a dozen.
func (b *bench) shares(ctx context.Context, flows int, o Options, runs int) (s shares, err error) {
	for seed := range uint64(runs) {
		o.Seed = 1 + seed
		r, err := b.run(ctx, fmt.Sprintf("cubic:%d", flows), o)
		if err != nil {
			return shares{}, err
		}
		s.ofFair += *r.ShareOfFair / float64(runs)
		s.undecodable += r.undecodable() / float64(runs)
		s.worst = max(s.worst, r.undecodable())
	}
	return s, nil
}

// meanOf returns the suffix that names the number of runs behind a mean; empty for a single run.
func meanOf(runs int) string {
	if runs == 1 {
		return ""
	}
	return fmt.Sprintf(" (mean of %d runs)", runs)
}

const (
	// rampRuns is the number of runs in which a receiver joins the competitors. Cubic's losses are seconds apart and
	// not aligned with the join, so a single run is not representative.
	rampRuns = 8
	// rampTime is the length of a run with a ramp. At its end, the last receiver has been connected for 3 s.
	rampTime = 22 * time.Second
	// ofSlow is the factor by which the competitors' figures may be worse than beside a slow ramp.
	ofSlow = 1.5
)

// ramps holds the means of the competitors' figures while a receiver joins, with a fast and with a slow ramp, over the
// same number of runs each.
type ramps struct {
	fast, slow OtherFigures
	runs       int
}

// ramps makes a receiver join competitors with probes and without probes. Without probes the estimate grows by 8 % per
// second.
func (b *bench) ramps(ctx context.Context, flows int, o Options, runs int) (*ramps, error) {
	means := ramps{runs: runs}
	o.Duration = rampTime
	for seed := range uint64(runs) {
		for _, slow := range []bool{false, true} {
			o.Seed = seed
			o.Estimator.Probe.Enabled, o.Estimator.Profile = !slow, "paper000"
			r, err := b.run(ctx, fmt.Sprintf("cubic:%d", flows), o)
			if err != nil {
				return nil, err
			}
			if r.Others == nil {
				return nil, fmt.Errorf("%d flows of Cubic, seed %d: %w", flows, seed, errEarly)
			}
			mean := &means.fast
			if slow {
				mean = &means.slow
			}
			mean.Loss += r.Others.Loss / float64(runs)
			mean.QueueP95 += r.Others.QueueP95 / float64(runs)
		}
	}
	return &means, nil
}

// lines compares the competitors' figures beside a receiver with the figures beside a slow ramp. If each figure comes
// from a single run, the names of the lines say so: about 50,000 packets of 1,500 bytes pass in the measured 3 s at 200
// Mbit/s, so that 0.01 % is five packets.
func (m *ramps) lines(name string) []claim.Line {
	if m.runs == 1 {
		name += "one run each, "
	}
	return []claim.Line{
		claim.AtMost(name+"the others' loss while ramping"+meanOf(m.runs), percent(m.fast.Loss), "%",
			ofSlow*percent(m.slow.Loss)),
		claim.Information(name+"the same beside a slow ramp", percent(m.slow.Loss), "%"),
		claim.AtMost(name+"the others' queue p95 while ramping"+meanOf(m.runs), m.fast.QueueP95, "ms",
			ofSlow*m.slow.QueueP95),
		claim.Information(name+"the same queue beside a slow ramp", m.slow.QueueP95, "ms"),
	}
}
