package hotpath

import "context"

// Runs are results of the same measurement, of which medians count.
type Runs []*Result

// Repeat measures so many times, each again, twice at most, while it is not valid. The machine's limit is measured beside each.
func Repeat(ctx context.Context, what string, runs int, o Options) (Runs, error) {
	b := bench{progress: o.Progress, serverBin: o.ServerBin, forward: Forward, limit: MeasureLimit}
	return b.repeat(ctx, what, runs, o)
}

// repeat makes so many runs of one measurement.
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

// Valid is how many of the runs were valid.
func (r Runs) Valid() (n int) {
	for _, one := range r {
		if one.Valid {
			n++
		}
	}
	return n
}

// Median is the median of one figure.
func (r Runs) Median(figure func(*Result) float64) float64 {
	values := make([]float64, len(r))
	for i, one := range r {
		values[i] = figure(one)
	}
	return median(values)
}

// Figure is the median of a figure that a server may not tell; nil where it is not told in every run.
func (r Runs) Figure(figure func(*Result) *float64) *float64 {
	for _, one := range r {
		if figure(one) == nil {
			return nil
		}
	}
	middle := r.Median(func(one *Result) float64 { return *figure(one) })
	return &middle
}

// Quantiles are the medians of each of three quantiles; nil where they are not told in every run.
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
