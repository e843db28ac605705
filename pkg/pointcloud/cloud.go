// Package pointcloud provides clouds of coloured points and their processing before coding: reading and writing PLY,
// bounding boxes, tiling, sampling, descriptions and voxel grids. The functions share no state: a cloud belongs to its
// holder. Types with working memory are used by one goroutine at a time, and may use all processors during a call.
package pointcloud

import "github.com/volsfu/volsfu/pkg/volumetric"

// Cloud is a set of points in structure-of-arrays form. Positions and Colors have the same length. Both are contiguous
// memory of 12 and 3 bytes per point, so that codecs use them directly. Labels and Sources are empty if unknown, and
// otherwise as long as Positions; all functions that copy points also copy labels and sources.
type Cloud struct {
	// Positions are in metres (x right, y up, z towards the viewer).
	Positions [][3]float32
	// Colors are 8-bit sRGB.
	Colors [][3]uint8
	// Labels assign each point to a part of the object. The source of the cloud defines the meaning; 0 means no label.
	Labels []uint16
	// Sources are bit masks of the cameras that saw each point: bit n is set for camera n.
	Sources []uint16
}

// Len returns the number of points.
func (c *Cloud) Len() int { return len(c.Positions) }

// Reset empties the cloud and keeps the memory.
func (c *Cloud) Reset() {
	c.Positions = c.Positions[:0]
	c.Colors = c.Colors[:0]
	c.Labels = c.Labels[:0]
	c.Sources = c.Sources[:0]
}

// Append adds one point. In a cloud with labels or sources, the point has no label and no camera.
func (c *Cloud) Append(position [3]float32, color [3]uint8) {
	if len(c.Labels) > 0 {
		c.Labels = append(c.Labels, 0)
	}
	if len(c.Sources) > 0 {
		c.Sources = append(c.Sources, 0)
	}
	c.Positions = append(c.Positions, position)
	c.Colors = append(c.Colors, color)
}

// AppendCloud adds the points of another cloud. If only one of the two clouds has labels or
// sources, the points of the other have no label or no camera.
func (c *Cloud) AppendCloud(other *Cloud) {
	before := c.Len()
	c.Positions = append(c.Positions, other.Positions...)
	c.Colors = append(c.Colors, other.Colors...)
	c.Labels = appendOptional(c.Labels, other.Labels, before, c.Len())
	c.Sources = appendOptional(c.Sources, other.Sources, before, c.Len())
}

// appendOptional appends an attribute that either cloud may lack. before and now are the numbers of
// points of the cloud.
func appendOptional(values, others []uint16, before, now int) []uint16 {
	if len(values) == 0 && len(others) == 0 {
		return values
	}
	values = append(values, make([]uint16, before-len(values))...)
	values = append(values, others...)
	return append(values, make([]uint16, now-len(values))...)
}

// CopyFrom replaces the cloud's points by a copy of the points of another cloud.
func (c *Cloud) CopyFrom(other *Cloud) {
	c.Positions = append(c.Positions[:0], other.Positions...)
	c.Colors = append(c.Colors[:0], other.Colors...)
	c.Labels = append(c.Labels[:0], other.Labels...)
	c.Sources = append(c.Sources[:0], other.Sources...)
}

// View returns a range of the cloud's points in the memory of the cloud.
func (c *Cloud) View(begin, end int) Cloud {
	view := Cloud{Positions: c.Positions[begin:end:end], Colors: c.Colors[begin:end:end]}
	if len(c.Labels) > 0 {
		view.Labels = c.Labels[begin:end:end]
	}
	if len(c.Sources) > 0 {
		view.Sources = c.Sources[begin:end:end]
	}
	return view
}

// Swap exchanges two points.
func (c *Cloud) Swap(i, j int) {
	c.Positions[i], c.Positions[j] = c.Positions[j], c.Positions[i]
	c.Colors[i], c.Colors[j] = c.Colors[j], c.Colors[i]
	if len(c.Labels) > 0 {
		c.Labels[i], c.Labels[j] = c.Labels[j], c.Labels[i]
	}
	if len(c.Sources) > 0 {
		c.Sources[i], c.Sources[j] = c.Sources[j], c.Sources[i]
	}
}

// Truncate keeps the first points of a cloud that has at least this number.
func (c *Cloud) Truncate(points int) {
	c.Positions, c.Colors = c.Positions[:points], c.Colors[:points]
	if len(c.Labels) > 0 {
		c.Labels = c.Labels[:points]
	}
	if len(c.Sources) > 0 {
		c.Sources = c.Sources[:points]
	}
}

// resize sets the number of points, with unspecified values, with labels and sources if like has them. resize
// reallocates only if the memory does not suffice; the values are then lost.
func (c *Cloud) resize(points int, like *Cloud) {
	c.Positions, c.Colors = resize(c.Positions, points), resize(c.Colors, points)
	c.Labels, c.Sources = c.Labels[:0], c.Sources[:0]
	if len(like.Labels) > 0 {
		c.Labels = resize(c.Labels, points)
	}
	if len(like.Sources) > 0 {
		c.Sources = resize(c.Sources, points)
	}
}

// set copies point from of src to point at. Both clouds must have the same attributes.
func (c *Cloud) set(at int, src *Cloud, from int) {
	c.Positions[at], c.Colors[at] = src.Positions[from], src.Colors[from]
	if len(src.Labels) > 0 {
		c.Labels[at] = src.Labels[from]
	}
	if len(src.Sources) > 0 {
		c.Sources[at] = src.Sources[from]
	}
}

// Bounds returns the smallest box around the points, or the zero box if there are none.
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
