// Package pointcloud holds clouds of coloured points and what is done to them before coding: reading and writing PLY, bounding boxes,
// tiling, sampling and voxel grids. Its functions share nothing: a cloud belongs to whoever holds it.
package pointcloud

import "github.com/volsfu/volsfu/pkg/volumetric"

// Cloud is a set of points in structure-of-arrays form. Both slices have the same length; both are contiguous memory of 12 and 3 bytes
// per point, so that codecs take them as they are.
type Cloud struct {
	// Positions are in metres (x right, y up, z towards the viewer).
	Positions [][3]float32
	// Colors are 8-bit sRGB.
	Colors [][3]uint8
}

// Len is the number of points.
func (c *Cloud) Len() int { return len(c.Positions) }

// Reset empties the cloud and keeps its memory.
func (c *Cloud) Reset() {
	c.Positions = c.Positions[:0]
	c.Colors = c.Colors[:0]
}

// Append adds one point.
func (c *Cloud) Append(position [3]float32, color [3]uint8) {
	c.Positions = append(c.Positions, position)
	c.Colors = append(c.Colors, color)
}

// Bounds is the smallest box around the points, the zero box where there are none.
func (c *Cloud) Bounds() volumetric.BoundingBox {
	if c.Len() == 0 {
		return volumetric.BoundingBox{}
	}
	box := volumetric.BoundingBox{Min: c.Positions[0], Max: c.Positions[0]}
	for _, p := range c.Positions[1:] {
		for axis, v := range p {
			box.Min[axis] = min(box.Min[axis], v)
			box.Max[axis] = max(box.Max[axis], v)
		}
	}
	return box
}
