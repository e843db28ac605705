package visual

import "math"

// Sequence has the statistics of the scores of one run, frame by frame.
type Sequence struct {
	// Mean is the mean of all frames, Deviation the standard deviation within the sequence.
	Mean, Deviation float64
	Min, Max        float64
	Frames          int
}

// SequenceOf returns the statistics of one run. Without scores, all fields are zero.
func SequenceOf(scores []float64) (s Sequence) {
	if len(scores) == 0 {
		return s
	}
	s.Frames, s.Min, s.Max = len(scores), scores[0], scores[0]
	for _, score := range scores {
		s.Min, s.Max = min(s.Min, score), max(s.Max, score)
	}
	s.Mean, s.Deviation = spread(scores)
	return s
}

// spread returns the mean and the population standard deviation of values. The deviation of a single value is 0.
func spread(values []float64) (mean, deviation float64) {
	if len(values) == 0 {
		return 0, 0
	}
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(deviation)
}
