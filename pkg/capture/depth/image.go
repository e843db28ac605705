package depth

import "fmt"

// Image is one image of a depth camera, row by row from the upper left corner. The creator of the
// image owns its slices.
type Image struct {
	// Depth is in the camera's units; 0 means no depth.
	Depth []uint16
	// Colors are 8-bit sRGB, one per pixel of Depth. The slice is empty if there are no colours.
	Colors [][3]uint8
	// Labels assign each pixel to a part of the object. The slice is empty if there are no labels.
	Labels []uint16
}

// Validate returns an error that wraps ErrImage unless the image has the size of the camera's
// images.
func (m *Image) Validate(c *Camera) error {
	pixels := c.Width * c.Height
	switch {
	case len(m.Depth) != pixels:
		return fmt.Errorf("%w: %d depths, expected %d × %d", ErrImage, len(m.Depth), c.Width, c.Height)
	case len(m.Colors) != 0 && len(m.Colors) != pixels:
		return fmt.Errorf("%w: %d colours, expected %d × %d or none", ErrImage, len(m.Colors), c.Width, c.Height)
	case len(m.Labels) != 0 && len(m.Labels) != pixels:
		return fmt.Errorf("%w: %d labels, expected %d × %d or none", ErrImage, len(m.Labels), c.Width, c.Height)
	}
	return nil
}

// CopyFrom makes the image a copy of another image and reuses its own memory.
func (m *Image) CopyFrom(other *Image) {
	m.Depth = append(m.Depth[:0], other.Depth...)
	m.Colors = append(m.Colors[:0], other.Colors...)
	m.Labels = append(m.Labels[:0], other.Labels...)
}
