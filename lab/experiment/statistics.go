package experiment

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/inference"
)

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
	Interval *inference.Interval `json:"interval,omitempty"`
}

// The methods of intervals. Batches are consecutive parts of one iteration: neighbouring frames are correlated, so an
// interval from single frames would be too narrow (method of batch means: Law, Simulation Modeling and Analysis,
// section 9.5.3).
const (
	MethodIterations = "Student's t over iterations"
	MethodBatches    = "Student's t over 10 consecutive parts of one iteration"
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
	if s.Interval = inference.Mean(parts); s.Interval != nil {
		s.Interval.Method = method
	}
	return s
}
