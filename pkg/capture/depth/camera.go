package depth

import (
	"fmt"
	"math"
)

// Limits on cameras.
const (
	// MaxPixels is the maximum number of pixels: 16.8 million, twice that of a 4K camera. The
	// tables of a Projector then take less than 1 GB.
	MaxPixels = 1 << 24
	// maxUnit corresponds to a full scale of 6.5 km, which no depth camera has.
	maxUnit = 0.1
)

// Camera describes a depth camera, like librealsense's rs2_intrinsics, with its pose in the world.
type Camera struct {
	// Name identifies the camera within a source and in calibrations: a serial number, or the name
	// of a recording.
	Name string `json:"name"`
	// Width and Height are the size of its images in pixels.
	Width  int `json:"width"`
	Height int `json:"height"`
	// FX and FY are the focal lengths, CX and CY the principal point, in pixels. The centre of the
	// first pixel is at (0, 0).
	FX         float64    `json:"fx"`
	FY         float64    `json:"fy"`
	CX         float64    `json:"cx"`
	CY         float64    `json:"cy"`
	Distortion Distortion `json:"distortion"`
	// Unit is the length of one unit of its depth images, in metres.
	Unit float64 `json:"unit_m"`
	// Pose is the motion from the camera's coordinates to the world's.
	Pose Pose `json:"pose"`
}

// Validate returns an error that wraps ErrCamera for the first invalid value.
func (c *Camera) Validate() error {
	switch {
	case c.Width < 1 || c.Height < 1 || c.Width > MaxPixels/c.Height:
		return fmt.Errorf(
			"%w: width × height is %d × %d, expected at least 1 × 1 and at most %d pixels",
			ErrCamera,
			c.Width,
			c.Height,
			MaxPixels,
		)
	case !usable(c.FX) || !usable(c.FY):
		return fmt.Errorf("%w: focal lengths are %g and %g, expected more than 0 pixels", ErrCamera, c.FX, c.FY)
	case !finite(c.CX) || !finite(c.CY):
		return fmt.Errorf("%w: principal point is %g, %g, expected finite pixels", ErrCamera, c.CX, c.CY)
	case !usable(c.Unit) || c.Unit > maxUnit:
		return fmt.Errorf("%w: unit of depth is %g m, expected more than 0 and at most %g", ErrCamera, c.Unit, maxUnit)
	}
	if err := c.Distortion.validate(); err != nil {
		return err
	}
	return c.Pose.Validate()
}

// usable also rejects lengths so small or large that a division by them leaves the range of float32
// coordinates.
func usable(v float64) bool { return v >= 1e-6 && v <= 1e6 }

func finite(v float64) bool { return math.Abs(v) <= 1e6 }

// Project returns the pixel that sees the point (x, y, 1) of the camera's image plane, y down. ok
// is false if the camera model is not valid so far from the axis.
func (c *Camera) Project(x, y float64) (u, v float64, ok bool) {
	x, y, ok = c.Distortion.apply(x, y)
	return x*c.FX + c.CX, y*c.FY + c.CY, ok
}

// Deproject returns the point (x, y, 1) of the camera's image plane, y down, that a pixel sees. ok
// is false if the camera model has no such point.
func (c *Camera) Deproject(u, v float64) (x, y float64, ok bool) {
	return c.Distortion.remove((u-c.CX)/c.FX, (v-c.CY)/c.FY)
}
