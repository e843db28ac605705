package codec

import "slices"

// Capabilities describes what a codec preserves of a cloud and which parameters it uses. All codecs
// quantize positions on the grid of Params.
type Capabilities struct {
	// Encodes is false for codecs that this program only decodes; the encoders return an error for every cloud.
	Encodes bool
	// Rasters reports that the encoders implement RasterEncoder and encode no clouds. Encodes is then false.
	Rasters bool
	// Colors reports whether colours are preserved, unless Params.NoColors omits them. ExactColors
	// reports whether colours are preserved exactly; they are not if the codec uses
	// Params.ColorQuality.
	Colors, ExactColors bool
	// Steps contains the speeds that differ, ascending: the lowest speed of each step. A speed
	// between two steps is coded as the step below. A codec that ignores Params.Speed has only the
	// step 0.
	Steps []int
	// SequentialSteps contains the steps with Params.Sequential. SequentialSteps is empty if the codec ignores
	// Sequential.
	SequentialSteps []int
	// Ordered reports that the encoders implement OrderedEncoder.
	Ordered bool
	// MaxPoints is the maximum number of points in a frame.
	MaxPoints int
}

// StepsOf returns the speeds that differ for the method selected by the parameters.
func (c Capabilities) StepsOf(params Params) []int {
	if params.Sequential && len(c.SequentialSteps) > 0 {
		return c.SequentialSteps
	}
	return c.Steps
}

// Step returns the step of the parameters' speed: the lowest speed that is coded in the same way.
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
