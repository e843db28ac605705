// Package pointcloud holds clouds of coloured points and what is done to them before coding: reading and writing PLY, bounding boxes,
// tiling, sampling, descriptions and voxel grids. Its functions share nothing: a cloud belongs to whoever holds it. What keeps working memory
// is used by one goroutine at a time, and may use all processors while it is called.
package pointcloud

import "github.com/volsfu/volsfu/pkg/volumetric"

// Cloud is a set of points in structure-of-arrays form. Positions and Colors have the same length; both are contiguous memory of 12 and 3
// bytes per point, so that codecs take them as they are. Labels and Sources are empty where nobody knows them, else as long as the others;
// everything that copies points copies theirs.
type Cloud struct {
	// Positions are in metres (x right, y up, z towards the viewer).
	Positions [][3]float32
	// Colors are 8-bit sRGB.
	Colors [][3]uint8
	// Labels say which part of the object each point belongs to; what they mean is up to who made them, 0 is a point without label.
	Labels []uint16
	// Sources are the cameras that saw each point: bit n is set for camera n.
	Sources []uint16
}

// Len is the number of points.
func (c *Cloud) Len() int { return len(c.Positions) }

// Reset empties the cloud and keeps its memory.
func (c *Cloud) Reset() {
	c.Positions = c.Positions[:0]
	c.Colors = c.Colors[:0]
	c.Labels = c.Labels[:0]
	c.Sources = c.Sources[:0]
}

// Append adds one point, in a cloud with labels or sources one without label that no camera saw.
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

// AppendCloud adds the points of another cloud. Where only one of the two has labels or sources, the other's points count as those without
// label, or that no camera saw.
func (c *Cloud) AppendCloud(other *Cloud) {
	before := c.Len()
	c.Positions = append(c.Positions, other.Positions...)
	c.Colors = append(c.Colors, other.Colors...)
	c.Labels = appendOptional(c.Labels, other.Labels, before, c.Len())
	c.Sources = appendOptional(c.Sources, other.Sources, before, c.Len())
}

// appendOptional appends what either may lack, to a cloud that had before points and now has the other number.
func appendOptional(values, others []uint16, before, now int) []uint16 {
	if len(values) == 0 && len(others) == 0 {
		return values
	}
	values = append(values, make([]uint16, before-len(values))...)
	values = append(values, others...)
	return append(values, make([]uint16, now-len(values))...)
}

// CopyFrom replaces the cloud's points by those of another, in memory of its own.
func (c *Cloud) CopyFrom(other *Cloud) {
	c.Positions = append(c.Positions[:0], other.Positions...)
	c.Colors = append(c.Colors[:0], other.Colors...)
	c.Labels = append(c.Labels[:0], other.Labels...)
	c.Sources = append(c.Sources[:0], other.Sources...)
}

// View is a middleOf of the cloud's points, in the cloud's own memory.
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

// Truncate leaves the first points, as many as given, of a cloud that has no fewer.
func (c *Cloud) Truncate(points int) {
	c.Positions, c.Colors = c.Positions[:points], c.Colors[:points]
	if len(c.Labels) > 0 {
		c.Labels = c.Labels[:points]
	}
	if len(c.Sources) > 0 {
		c.Sources = c.Sources[:points]
	}
}

// resize gives the cloud a number of points with unspecified values, with labels and sources where like has them. It reallocates only where the
// memory does not suffice, and then loses what was there.
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

// set makes the point at an index the one at another index of a cloud that has the same arrays.
func (c *Cloud) set(at int, src *Cloud, from int) {
	c.Positions[at], c.Colors[at] = src.Positions[from], src.Colors[from]
	if len(src.Labels) > 0 {
		c.Labels[at] = src.Labels[from]
	}
	if len(src.Sources) > 0 {
		c.Sources[at] = src.Sources[from]
	}
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
