package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/volsfu/volsfu/lab"
)

// confidence is the confidence level of all intervals.
const confidence = 0.95

// Statistics summarise the measurements of several iterations, or of the parts of one iteration.
type Statistics struct {
	// Count is the number of iterations.
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	// Deviation is the sample standard deviation, 0 for one iteration.
	Deviation float64 `json:"deviation"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	// Interval is the interval of the mean, nil if there are too few values.
	Interval *Interval `json:"interval,omitempty"`
}

// Interval is a confidence interval of 95 % of a mean.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Method names the method of computation.
	Method string `json:"method"`
}

// The methods of intervals. Batches are consecutive parts of one iteration: neighbouring frames are correlated, so an
// interval from single frames would be too narrow (method of batch means: Law, Simulation Modeling and Analysis,
// section 9.5.3).
const (
	MethodIterations = "Student's t over iterations"
	MethodBatches    = "Student's t over 10 consecutive parts of one iteration"
	MethodBootstrap  = "bootstrap"
)

// batches is the number of parts of an iteration. 10 to 30 are usual (Schmeiser 1982); a short run of 10 s has parts of
// one second.
const batches = 10

// Mean returns the arithmetic mean, 0 for no values.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stat.Mean(values, nil)
}

// Quantile returns the smallest value that at least the given share (0 to 1) of all values do not exceed (nearest
// rank); 0 for no values.
func Quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Student returns the half width of the mean's interval for independent values: t(0.975, n-1)·s/√n. The result is false
// for fewer than two values.
func Student(values []float64) (float64, bool) {
	n := float64(len(values))
	if n < 2 {
		return 0, false
	}
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile((1 + confidence) / 2)
	return t * stat.StdDev(values, nil) / math.Sqrt(n), true
}

// BatchMeans returns the means of consecutive parts of samples, of lengths as equal as possible; nil if a part would
// have fewer than two samples.
func BatchMeans(samples []float64, parts int) []float64 {
	if len(samples) < 2*parts {
		return nil
	}
	means := make([]float64, parts)
	for i := range means {
		means[i] = Mean(samples[i*len(samples)/parts : (i+1)*len(samples)/parts])
	}
	return means
}

// Summarise summarises the figures of iterations. With several iterations, the interval is Student's t over the
// iterations; with one iteration, over consecutive parts of its samples, if there are samples.
func Summarise(figures []Figure) Statistics {
	values := make([]float64, len(figures))
	for i, f := range figures {
		values[i] = f.Value
	}
	s := Statistics{Count: len(values), Mean: Mean(values), Median: lab.Median(values)}
	if len(values) == 0 {
		return s
	}
	s.Min, s.Max = slices.Min(values), slices.Max(values)
	method, parts := MethodIterations, values
	if len(values) == 1 {
		method, parts = MethodBatches, BatchMeans(figures[0].Samples, batches)
	} else {
		s.Deviation = stat.StdDev(values, nil)
	}
	if half, ok := Student(parts); ok {
		s.Interval = &Interval{s.Mean - half, s.Mean + half, method}
	}
	return s
}

// resamples is the number of draws of a bootstrap; more than 1,000 are advised for intervals of 95 % (Efron and
// Tibshirani, An Introduction to the Bootstrap, section 13.3).
const resamples = 2000

// Bootstrap returns the percentile interval of a statistic of two independently measured sets of values. The same
// values yield the same interval. The result is nil if a set has fewer than two values, or if the statistic of the
// draws has no interval: a ratio to values some of which are 0 is infinite or undefined in many draws.
func Bootstrap(a, b []float64, statistic func(a, b float64) float64) *Interval {
	if len(a) < 2 || len(b) < 2 {
		return nil
	}
	random := rand.New(rand.NewPCG(1, 2))
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = statistic(resample(random, a), resample(random, b))
	}
	// NaN is sorted first. Even a single NaN could belong anywhere in the order.
	slices.Sort(drawn)
	tail := int((1 - confidence) / 2 * resamples)
	low, high := drawn[tail], drawn[resamples-1-tail]
	if math.IsNaN(drawn[0]) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return nil
	}
	return &Interval{low, high, fmt.Sprintf("%s of %d draws", MethodBootstrap, resamples)}
}

// resample returns the mean of len(values) values drawn with replacement.
func resample(random *rand.Rand, values []float64) float64 {
	sum := 0.0
	for range values {
		sum += values[random.IntN(len(values))]
	}
	return sum / float64(len(values))
}
