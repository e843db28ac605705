package visual

import "math"

// Sequence is what the scores of one run come to, frame by frame.
type Sequence struct {
	// Mean is that of all frames, Deviation how far frames are from it: the deviation within the sequence.
	Mean, Deviation float64
	Min, Max        float64
	Frames          int
}

// SequenceOf sums up the scores of one run; without scores there is nothing but zeroes.
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

// spread is the mean and the deviation of all values there are, which is 0 for one.
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
