package depth

import "fmt"

// Image is what a depth camera saw at one instant, row by row from the upper left corner. The slices belong to whoever made the image.
type Image struct {
	// Depth is in the camera's units, 0 where it has none.
	Depth []uint16
	// Colors are 8-bit sRGB, one for each pixel of Depth; empty where there are none.
	Colors [][3]uint8
	// Labels say what of the object a pixel shows; empty where nobody said.
	Labels []uint16
}

// Validate tells whether the image is one of the camera's, in an error around ErrImage.
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

// CopyFrom makes the image an equal of another, in memory of its own that is used again.
func (m *Image) CopyFrom(other *Image) {
	m.Depth = append(m.Depth[:0], other.Depth...)
	m.Colors = append(m.Colors[:0], other.Colors...)
	m.Labels = append(m.Labels[:0], other.Labels...)
}
