package codec

import "github.com/volsfu/volsfu/pkg/volumetric"

// Grid is where positions can be after quantisation with parameters that are valid. Copies are as good as the original.
type Grid struct {
	box   volumetric.BoundingBox
	scale float64 // steps per metre
	step  float32 // metres per step
}

// Grid is the grid of the parameters.
func (p Params) Grid() Grid {
	return Grid{box: p.Box, scale: float64(p.steps()) / float64(p.Range()), step: p.Step()}
}

// Steps are how far along each axis the point of the grid is that is nearest to a position. What is
// outside the box goes to its side, what is not a number to the lower one.
func (g *Grid) Steps(position [3]float32) [3]uint32 {
	low, high := &g.box.Min, &g.box.Max
	return [3]uint32{
		quantize(position[0], low[0], high[0], g.scale),
		quantize(position[1], low[1], high[1], g.scale),
		quantize(position[2], low[2], high[2], g.scale),
	}
}

// quantize is one coordinate; the compiler puts it in line.
func quantize(v, low, high float32, scale float64) uint32 {
	if !(v > low) {
		v = low
	}
	return uint32((float64(min(v, high))-float64(low))*scale + 0.5)
}

// Position is the point of the grid so many steps along each axis.
func (g *Grid) Position(steps [3]uint32) [3]float32 {
	// The conversions keep compilers from fusing the two operations, so that every machine decodes the same grid.
	return [3]float32{
		float32(float32(steps[0])*g.step) + g.box.Min[0],
		float32(float32(steps[1])*g.step) + g.box.Min[1],
		float32(float32(steps[2])*g.step) + g.box.Min[2],
	}
}
