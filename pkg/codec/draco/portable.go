package draco

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// portableDecoder decodes point clouds in Go, for programs without cgo. It has no state.
type portableDecoder struct{}

// Decode replaces the cloud's points by the frame's.
func (portableDecoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := decodePortably(cloud, data); err != nil {
		cloud.Reset()
		return fmt.Errorf("decode draco: %w", err)
	}
	return nil
}

// Announced implements codec.Announcer.
func (portableDecoder) Announced(data []byte) (int, error) { return announced(data) }

// announced returns the number of points that a frame announces.
func announced(data []byte) (int, error) {
	h, _, _, err := parse(data)
	if err != nil {
		return 0, fmt.Errorf("decode draco: %w", err)
	}
	return int(h.points), nil
}

func decodePortably(cloud *pointcloud.Cloud, data []byte) error {
	h, inside, grid, err := parse(data)
	if err != nil {
		return err
	}
	n := int(h.points)
	cloud.Positions = slices.Grow(cloud.Positions, n)
	cloud.Colors = slices.Grow(cloud.Colors, n)
	decode := decodeTree
	if h.sequential {
		decode = decodeSequence
	}
	rest, err := decode(cloud, h, grid, inside)
	switch {
	case err != nil:
		return inconsistent(n, len(inside))
	case len(rest) > 0:
		return trailing(len(rest))
	}
	if !h.colored {
		for range n {
			cloud.Colors = append(cloud.Colors, codec.White)
		}
	}
	return nil
}

// inconsistent returns the error for content that no encoder produces.
func inconsistent(points, bytes int) error {
	return fmt.Errorf("%w: the data of %d points in %d bytes is inconsistent", codec.ErrMalformed, points, bytes)
}

// trailing returns the error for bytes behind the points.
func trailing(bytes int) error {
	return fmt.Errorf("%w: %d bytes between points and quantisation, expected none", codec.ErrMalformed, bytes)
}

// step returns the step of the grid in metres.
func (t trailer) step() float32 { return t.scale / float32(uint32(1)<<t.bits-1) }

// position returns a position of the grid, which has the given step.
func (t trailer) position(x, y, z uint32, step float32) [3]float32 {
	// The conversions prevent fused operations, which would round differently.
	return [3]float32{
		float32(float32(int32(x))*step) + t.min[0],
		float32(float32(int32(y))*step) + t.min[1],
		float32(float32(int32(z))*step) + t.min[2],
	}
}
