package zstd

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/planes"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// decoder keeps its working memory, about ten bytes per point.
type decoder struct{ planes planes.Decompressor }

// Decode replaces the cloud's points by the frame's.
func (d *decoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := d.decode(cloud, data); err != nil {
		cloud.Reset()
		return fmt.Errorf("decode zstd: %w", err)
	}
	return nil
}

// Announced implements codec.Announcer.
func (*decoder) Announced(data []byte) (int, error) {
	head, err := parseHead(data)
	if err != nil {
		return 0, fmt.Errorf("decode zstd: %w", err)
	}
	return int(head.Points), nil
}

// parseHead parses a frame's head and limits the number of points.
func parseHead(data []byte) (codec.Head, error) {
	head, err := codec.ParseHead(data)
	if err != nil {
		return codec.Head{}, err
	}
	if most := codec.MostPoints(len(data), maxPoints); uint64(head.Points) > uint64(most) {
		return codec.Head{}, fmt.Errorf("%w: %d points in %d bytes, expected at most %d", codec.ErrMalformed,
			head.Points, len(data), most)
	}
	return head, nil
}

func (d *decoder) decode(cloud *pointcloud.Cloud, data []byte) error {
	head, err := parseHead(data)
	if err != nil {
		return err
	}
	l := layoutOf(int(head.Points), head.Params)
	bytes, err := d.planes.Decompress(data[codec.HeadBytes:], l.bytes())
	if err != nil {
		return err
	}
	cloud.Positions = slices.Grow(cloud.Positions, l.points)[:l.points]
	cloud.Colors = slices.Grow(cloud.Colors, l.points)[:l.points]
	if err := readPositions(cloud.Positions, bytes, head.Params.Grid(), l); err != nil {
		return err
	}
	readColors(cloud.Colors, bytes[l.points*(l.placePlanes+3*l.belowPlanes):], l)
	return nil
}

// readPositions decodes the positions.
func readPositions(positions [][3]float32, planes []byte, grid codec.Grid, l layout) error {
	n, end := l.points, uint64(1)<<(3*l.curve)
	here := uint64(0)
	for i := range positions {
		difference := uint64(0)
		for plane := range l.placePlanes {
			difference |= uint64(planes[plane*n+i]) << (8 * plane)
		}
		// A difference has at most six bytes, so that the sum does not overflow before it is found
		// to be too large.
		if here += difference; here >= end {
			return fmt.Errorf("%w: point %d is beyond the end of the curve", codec.ErrMalformed, i)
		}
		steps := coordinatesOf(here)
		if l.below > 0 {
			if err := readBelow(&steps, planes[l.placePlanes*n+i:], l); err != nil {
				return fmt.Errorf("%w: point %d", err, i)
			}
		}
		positions[i] = grid.Position(steps)
	}
	return nil
}

// readBelow adds the bits below the curve to the coordinates of a point. planes begins with the
// point's first byte.
func readBelow(steps *[3]uint32, planes []byte, l layout) error {
	for axis := range steps {
		below := uint32(0)
		for plane := range l.belowPlanes {
			below |= uint32(planes[(axis*l.belowPlanes+plane)*l.points]) << (8 * plane)
		}
		if below>>l.below != 0 {
			return fmt.Errorf(
				"%w: coordinate %d has %#x below the curve, expected %d bits",
				codec.ErrMalformed,
				axis,
				below,
				l.below,
			)
		}
		steps[axis] = steps[axis]<<l.below | below
	}
	return nil
}

// readColors decodes the colours from their differences.
func readColors(colors [][3]uint8, planes []byte, l layout) {
	if l.colorPlanes == 0 {
		for i := range colors {
			colors[i] = codec.White
		}
		return
	}
	n := l.points
	greens, reds, blues := planes[:n], planes[n:2*n], planes[2*n:3*n]
	var color [3]uint8
	for i := range colors {
		green := greens[i]
		color[0] += reds[i] + green
		color[1] += green
		color[2] += blues[i] + green
		colors[i] = color
	}
}
