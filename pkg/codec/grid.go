package codec

import "github.com/volsfu/volsfu/pkg/volumetric"

// Grid is the set of positions after quantization with valid parameters. A Grid may be copied.
type Grid struct {
	box   volumetric.BoundingBox
	scale float64 // steps per metre
	step  float32 // metres per step
}

// Grid returns the grid of the parameters.
func (p Params) Grid() Grid {
	return Grid{box: p.Box, scale: float64(p.steps()) / float64(p.Range()), step: p.Step()}
}

// Steps returns the grid point nearest to a position, in steps along each axis. Positions outside
// of the box are clamped; a coordinate that is not a number becomes the minimum.
func (g *Grid) Steps(position [3]float32) [3]uint32 {
	low, high := &g.box.Min, &g.box.Max
	return [3]uint32{
		quantize(position[0], low[0], high[0], g.scale),
		quantize(position[1], low[1], high[1], g.scale),
		quantize(position[2], low[2], high[2], g.scale),
	}
}

// quantize returns the steps of one coordinate. The compiler inlines it.
func quantize(v, low, high float32, scale float64) uint32 {
	if !(v > low) {
		v = low
	}
	return uint32((float64(min(v, high))-float64(low))*scale + 0.5)
}

// Position returns the position of a grid point.
func (g *Grid) Position(steps [3]uint32) [3]float32 {
	// The conversions prevent the compiler from fusing the two operations, so that every machine
	// decodes the same grid.
	return [3]float32{
		float32(float32(steps[0])*g.step) + g.box.Min[0],
		float32(float32(steps[1])*g.step) + g.box.Min[1],
		float32(float32(steps[2])*g.step) + g.box.Min[2],
	}
}
