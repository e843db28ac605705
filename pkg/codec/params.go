package codec

import (
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Validate returns an error that wraps ErrParams for the first invalid parameter. All codecs have
// the same limits.
func (p Params) Validate() error {
	switch {
	case p.PositionBits < 1 || p.PositionBits > 30:
		return fmt.Errorf("%w: %d position bits, expected 1 to 30", ErrParams, p.PositionBits)
	case p.Speed < 0 || p.Speed > 10:
		return fmt.Errorf("%w: speed is %d, expected 0 to 10", ErrParams, p.Speed)
	case p.ColorQuality < 0 || p.ColorQuality > 100:
		return fmt.Errorf(
			"%w: colour quality is %d, expected 1 to 100, or 0 for %d",
			ErrParams,
			p.ColorQuality,
			DefaultColorQuality,
		)
	}
	for axis := range 3 {
		low, high := float64(p.Box.Min[axis]), float64(p.Box.Max[axis])
		// The difference v-v is not 0 if v is infinite or not a number.
		if low-low != 0 || high-high != 0 || high < low {
			return fmt.Errorf(
				"%w: box is %v to %v, expected finite corners with Min below Max",
				ErrParams,
				p.Box.Min,
				p.Box.Max,
			)
		}
	}
	r := p.Range()
	// If the corner with the largest coordinates is finite after rounding, every position on the
	// grid is finite.
	reach := float64(max(p.Box.Min[0], p.Box.Min[1], p.Box.Min[2])) + float64(r)
	if !(r > 0) || reach > math.MaxFloat32 {
		return fmt.Errorf(
			"%w: longest edge of the box is %g m, expected more than 0 and finite positions",
			ErrParams,
			r,
		)
	}
	return nil
}

// Check returns an error that wraps ErrParams if a codec with at most maxPoints points per frame
// cannot encode the cloud with these parameters.
func (p Params) Check(cloud *pointcloud.Cloud, maxPoints int) error {
	if err := p.Validate(); err != nil {
		return err
	}
	switch n := cloud.Len(); {
	case !p.NoColors && n != len(cloud.Colors):
		return fmt.Errorf(
			"%w: cloud has %d positions and %d colours, expected equal numbers",
			ErrParams,
			n,
			len(cloud.Colors),
		)
	case n > maxPoints:
		return fmt.Errorf("%w: cloud has %d points, expected at most %d", ErrParams, n, maxPoints)
	}
	return nil
}

// Range returns the longest edge of the box in metres. All three coordinates are quantized by this
// length.
func (p Params) Range() float32 {
	return max(p.Box.Max[0]-p.Box.Min[0], p.Box.Max[1]-p.Box.Min[1], p.Box.Max[2]-p.Box.Min[2])
}

// Step returns the distance of two neighbouring positions on the grid, in metres. A decoded
// coordinate differs from the encoded coordinate by at most half a step plus the rounding of
// float32.
func (p Params) Step() float32 { return p.Range() / float32(p.steps()) }

// steps returns the number of steps along the longest edge.
func (p Params) steps() uint32 { return 1<<p.PositionBits - 1 }
