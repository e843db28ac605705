package cwi1

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// readTree appends the centres of the octree's leaves to the cloud.
func (d *decoder) readTree(cloud *pointcloud.Cloud, h header) error {
	cloud.Positions = slices.Grow(cloud.Positions, h.points)
	cloud.Colors = slices.Grow(cloud.Colors, h.points)
	// children has the children of each branch on the path to the present one that are not yet visited; x, y and z are
	// the position of the present branch among those on its level.
	var children [mostDepth]uint8
	var x, y, z uint32
	level, branches := 0, 0
	root, err := d.branch(&branches, h)
	if err != nil {
		return err
	}
	children[0] = root
	for {
		left := children[level]
		if left == 0 {
			if level == 0 {
				break
			}
			level--
			x, y, z = x>>1, y>>1, z>>1
			continue
		}
		children[level] = left & (left - 1)
		child := uint32(bits.TrailingZeros8(left))
		cx, cy, cz := x<<1|child>>2, y<<1|child>>1&1, z<<1|child&1
		if level == h.depth-1 {
			if cloud.Len() == h.points {
				return fmt.Errorf("%w: more than the %d points of the header", codec.ErrMalformed, h.points)
			}
			cloud.Positions = append(cloud.Positions, [3]float32{h.centre(0, cx), h.centre(1, cy), h.centre(2, cz)})
			continue
		}
		level++
		x, y, z = cx, cy, cz
		if children[level], err = d.branch(&branches, h); err != nil {
			return err
		}
	}
	if cloud.Len() != h.points || branches != h.branches {
		return fmt.Errorf("%w: %d points in %d branches, expected %d in %d", codec.ErrMalformed, cloud.Len(), branches,
			h.points, h.branches)
	}
	return nil
}

// branch returns the children of the next branch, of which branches have been read.
func (d *decoder) branch(branches *int, h header) (children uint8, err error) {
	if *branches == h.branches {
		return 0, fmt.Errorf("%w: more than the %d branches of the header", codec.ErrMalformed, h.branches)
	}
	*branches++
	if children, err = d.section.next(); err == nil && children == 0 {
		err = fmt.Errorf("%w: branch %d has no children", codec.ErrMalformed, *branches)
	}
	return children, err
}

// centre returns the coordinate of the centre of a leaf.
func (h *header) centre(axis int, leaf uint32) float32 {
	return float32((float64(leaf)+0.5)*h.edge + h.low[axis])
}
