package codec

import "slices"

// Capabilities says what a codec keeps of a cloud and which parameters make a difference to it. All
// codecs quantise positions on the grid of Params.
type Capabilities struct {
	// Encodes is false for codecs that are only decoded here; their encoders refuse every cloud.
	Encodes bool
	// Colors tells whether colours are kept, unless Params.NoColors leaves them out; ExactColors
	// whether they come back as they were, which they do not where Params.ColorQuality counts.
	Colors, ExactColors bool
	// Steps are the speeds that differ, ascending, the lowest of each step: what lies between is
	// coded as the step below it. A codec that ignores Params.Speed has the one step 0.
	Steps []int
	// SequentialSteps are the same with Params.Sequential, and empty where the codec ignores that.
	SequentialSteps []int
	// Ordered tells that the encoders are OrderedEncoders.
	Ordered bool
	// MaxPoints is the largest number of points in a frame.
	MaxPoints int
}

// StepsOf are the speeds that differ by the method that the parameters ask for.
func (c Capabilities) StepsOf(params Params) []int {
	if params.Sequential && len(c.SequentialSteps) > 0 {
		return c.SequentialSteps
	}
	return c.Steps
}

// Step is the speed that stands for the parameters' own: the lowest that is coded in the same way.
func (c Capabilities) Step(params Params) int {
	steps := c.StepsOf(params)
	i, found := slices.BinarySearch(steps, params.Speed)
	switch {
	case found:
		return params.Speed
	case i > 0:
		return steps[i-1]
	default:
		return 0
	}
}
