package hotpath

import (
	"context"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath/machinelimit"
)

// Runs are results of the same measurement, of which medians count.
type Runs []*Result

// Repeat makes the given number of runs. A run on a busy machine is repeated, at most twice. The machine's limit is
// measured with each run.
func Repeat(ctx context.Context, what string, runs int, o Options) (Runs, error) {
	b := bench{progress: o.Progress, serverBin: o.ServerBin, forward: Forward, limit: machinelimit.Measure}
	return b.repeat(ctx, what, runs, o)
}

// repeat makes the given number of runs of one measurement.
func (b *bench) repeat(ctx context.Context, what string, runs int, o Options) (Runs, error) {
	var done Runs
	for run := range runs {
		b.progress.Say("%s: run %d of %d", what, run+1, runs)
		result, err := b.run(ctx, o)
		if err != nil {
			return nil, err
		}
		done = append(done, result)
	}
	return done, nil
}

// Valid returns the number of valid runs.
func (r Runs) Valid() (n int) {
	for _, one := range r {
		if one.Valid {
			n++
		}
	}
	return n
}

// Median returns the median of one figure.
func (r Runs) Median(figure func(*Result) float64) float64 {
	values := make([]float64, len(r))
	for i, one := range r {
		values[i] = figure(one)
	}
	return lab.Median(values)
}

// Figure returns the median of a figure that a server may not report; nil if the figure is missing in any run.
func (r Runs) Figure(figure func(*Result) *float64) *float64 {
	for _, one := range r {
		if figure(one) == nil {
			return nil
		}
	}
	middle := r.Median(func(one *Result) float64 { return *figure(one) })
	return &middle
}

// Quantiles returns the medians of each of three quantiles; nil if the quantiles are missing in any run.
func (r Runs) Quantiles(times func(*Result) *Quantiles) *Quantiles {
	for _, one := range r {
		if times(one) == nil {
			return nil
		}
	}
	return &Quantiles{
		P50:  r.Median(func(one *Result) float64 { return times(one).P50 }),
		P99:  r.Median(func(one *Result) float64 { return times(one).P99 }),
		P999: r.Median(func(one *Result) float64 { return times(one).P999 }),
	}
}
