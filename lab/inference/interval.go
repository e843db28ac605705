package inference

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the level of all confidence intervals.
const Confidence = 0.95

// Interval is a confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Method names the method of computation.
	Method string `json:"method"`
}

// The methods of intervals.
const (
	MethodStudent = "Student's t"
	MethodWelch   = "Welch's t"
	MethodFieller = "Fieller's theorem"
	MethodBCa     = "bias-corrected and accelerated bootstrap"
)

// moments are the mean of some values and the variance of the mean, with the degrees of freedom of the variance.
type moments struct{ mean, variance, freedom float64 }

func momentsOf(values []float64) moments {
	n := float64(len(values))
	mean, variance := stat.MeanVariance(values, nil)
	return moments{mean, variance / n, n - 1}
}

// quantileT returns the quantile of Student's distribution.
func quantileT(share, freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(share)
}

// satterthwaite returns the degrees of freedom of the sum of two variances (Satterthwaite 1946; Welch 1947). The two
// must not both be 0.
func satterthwaite(a, b moments) float64 {
	sum := a.variance + b.variance
	return sum * sum / (a.variance*a.variance/a.freedom + b.variance*b.variance/b.freedom)
}

// Mean returns the interval of a mean, mean ± t(0.975, n-1)·s/√n, nil for fewer than two values.
func Mean(values []float64) *Interval {
	if len(values) < 2 {
		return nil
	}
	m := momentsOf(values)
	half := quantileT((1+Confidence)/2, m.freedom) * math.Sqrt(m.variance)
	return &Interval{m.mean - half, m.mean + half, MethodStudent}
}

// Difference returns the interval of the mean of a minus the mean of b, nil if a or b has fewer than two values.
func Difference(a, b []float64) *Interval { return difference(a, b, Confidence) }

// difference returns the interval of a difference at a level of confidence.
func difference(a, b []float64, confidence float64) *Interval {
	if len(a) < 2 || len(b) < 2 {
		return nil
	}
	of, to := momentsOf(a), momentsOf(b)
	middle, half := of.mean-to.mean, 0.0
	if deviation := math.Sqrt(of.variance + to.variance); deviation > 0 {
		half = quantileT((1+confidence)/2, satterthwaite(of, to)) * deviation
	}
	return &Interval{middle - half, middle + half, MethodWelch}
}

// Ratio returns the interval of the mean of a divided by the mean of b: all ratios r for which a - r·b does not differ
// from 0 (Fieller 1954), with Satterthwaite's degrees of freedom at the ratio of the means. The result is nil if a or b
// has fewer than two values, or if the mean of b does not differ from 0: no finite interval contains the ratio then.
func Ratio(a, b []float64) *Interval {
	if len(a) < 2 || len(b) < 2 {
		return nil
	}
	of, to := momentsOf(a), momentsOf(b)
	if to.mean == 0 {
		return nil
	}
	ratio := of.mean / to.mean
	scaled := moments{variance: ratio * ratio * to.variance, freedom: to.freedom}
	if of.variance+scaled.variance == 0 {
		// With a ratio of 0 of constant values, the variance of b has no effect.
		return &Interval{ratio, ratio, MethodFieller}
	}
	t := quantileT((1+Confidence)/2, satterthwaite(of, scaled))
	// (mean a - r·mean b)² = t²·(variance a + r²·variance b), a quadratic equation in r.
	square := to.mean*to.mean - t*t*to.variance
	if square <= 0 {
		return nil
	}
	middle := of.mean * to.mean / square
	root := t * math.Sqrt(of.variance*square+to.variance*of.mean*of.mean) / square
	return &Interval{middle - root, middle + root, MethodFieller}
}

// The bootstrap's extent. resamples above 1,000 are advised for intervals of 95 % (Efron and Tibshirani, An
// Introduction to the Bootstrap, section 14.3). With fewer values than leastValues, the values that were not observed
// matter, and intervals are too narrow.
const (
	resamples   = 2000
	leastValues = 20
)

// Statistic returns the interval of a statistic other than the mean, for instance a median (Efron 1987). The same
// values have the same interval. The result is nil for fewer than 20 values.
func Statistic(values []float64, statistic func([]float64) float64) *Interval {
	n := len(values)
	if n < leastValues {
		return nil
	}
	whole := statistic(values)
	random := rand.New(rand.NewPCG(1, 2))
	drawn, draw := make([]float64, resamples), make([]float64, n)
	below := 0.0
	for i := range drawn {
		for k := range draw {
			draw[k] = values[random.IntN(n)]
		}
		drawn[i] = statistic(draw)
		switch {
		case drawn[i] < whole:
			below++
		case drawn[i] == whole:
			// A statistic such as the median is equal in many draws.
			below += 0.5
		}
	}
	slices.Sort(drawn)
	// A bias beyond the resolution of the draws has no finite correction.
	bias := distuv.UnitNormal.Quantile(min(max(below, 1), resamples-1) / resamples)
	acceleration := accelerationOf(values, statistic)
	limit := func(share float64) float64 {
		z := bias + distuv.UnitNormal.Quantile(share)
		corrected := distuv.UnitNormal.CDF(bias + z/(1-acceleration*z))
		return drawn[min(max(int(corrected*resamples), 0), resamples-1)]
	}
	return &Interval{limit((1 - Confidence) / 2), limit((1 + Confidence) / 2),
		fmt.Sprintf("%s of %d draws", MethodBCa, resamples)}
}

// accelerationOf estimates how fast the deviation of a statistic changes with its value, by omission of one value at a
// time (Efron and Tibshirani, equation 14.15).
func accelerationOf(values []float64, statistic func([]float64) float64) float64 {
	n := len(values)
	partial, rest := make([]float64, n), make([]float64, 0, n)
	for i := range values {
		rest = append(append(rest[:0], values[:i]...), values[i+1:]...)
		partial[i] = statistic(rest)
	}
	mean, squares, cubes := stat.Mean(partial, nil), 0.0, 0.0
	for _, p := range partial {
		d := mean - p
		squares += d * d
		cubes += d * d * d
	}
	if squares == 0 {
		return 0
	}
	return cubes / (6 * math.Pow(squares, 1.5))
}
