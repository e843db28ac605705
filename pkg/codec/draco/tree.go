package draco

import (
	"math/bits"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

const (
	// plainAxes and coloredAxes are the dimensions of a tree: x, y, z, and red, green, blue if there are colours.
	plainAxes   = 3
	coloredAxes = 6
	// selectFrom is the number of points from which on a node of level 6 contains its axis. Smaller nodes cut the axis
	// that was cut least often.
	selectFrom = 64
	// axisBits is the number of bits of such an axis.
	axisBits = 4
	// mostBits is the maximum number of bits of a coordinate.
	mostBits = 30
)

// numberReader reads the numbers of points in the halves of nodes: direct bits at levels 0 and 1, bits of one
// probability at levels 2 and 3, and from level 4 on bits with a probability for each position.
type numberReader struct {
	bitReader
	positions []bitDecoder
}

func (n *numberReader) start(level int, r *reader) error {
	switch {
	case level <= 1:
		return n.startWords(r)
	case level <= 3:
		return n.startEntropy(r)
	}
	n.positions = make([]bitDecoder, 32)
	for i := range n.positions {
		if err := n.positions[i].start(r); err != nil {
			return err
		}
	}
	// One more decoder, for single bits, is not used.
	return new(bitDecoder).start(r)
}

func (n *numberReader) number(width uint) uint32 {
	if n.positions == nil {
		return n.get(width)
	}
	value := uint32(0)
	for i := range n.positions[:width] {
		value = value<<1 | n.positions[i].next()
	}
	return value
}

// node is a part of the tree: size points whose first levels[axis] bits of each axis are those of base.
type node struct {
	base   [coloredAxes]uint32
	levels [coloredAxes]uint8
	axis   uint8 // the axis that was cut last
	size   uint32
}

// treeDecoder decodes a kd-tree.
type treeDecoder struct {
	axes, bits int
	selects    bool
	grid       trailer
	step       float32
	cloud      *pointcloud.Cloud
	numbers    numberReader
	rest       bitReader
	selected   bitReader
	halves     bitReader
	// steps and values have the bits of all coordinates and colours.
	steps, values uint32
}

// decodeTree appends the points of a tree to the cloud and returns the data behind them.
func decodeTree(cloud *pointcloud.Cloud, h header, grid trailer, data []byte) ([]byte, error) {
	r := &reader{data}
	width, err := r.uint32()
	if err != nil {
		return nil, err
	}
	points, err := r.uint32()
	if err != nil || points != h.points {
		return nil, errData
	}
	most := grid.bits
	d := treeDecoder{axes: plainAxes, selects: h.level >= maxLevel, grid: grid, step: grid.step(), cloud: cloud}
	if h.colored {
		d.axes, most = coloredAxes, max(grid.bits, 8)
	}
	if width > uint32(most) {
		return nil, errData
	}
	d.bits = int(width)
	if err := d.numbers.start(h.level, r); err != nil {
		return nil, err
	}
	for _, stream := range []*bitReader{&d.rest, &d.selected, &d.halves} {
		if err := stream.startWords(r); err != nil {
			return nil, err
		}
	}
	if err := d.walk(points); err != nil {
		return nil, err
	}
	if bits.Len32(d.steps) > grid.bits || bits.Len32(d.values) > 8 || d.numbers.exhausted || d.rest.exhausted ||
		d.selected.exhausted || d.halves.exhausted {
		return nil, errData
	}
	return r.data, nil
}

// walk descends the tree. Of two halves, one waits, so that there is at most one node for each level, and one more.
// The halves of a node never exceed the node, and each node consumes a level, so that the loop ends for any data.
func (d *treeDecoder) walk(points uint32) error {
	var waiting [mostBits*coloredAxes + 2]node
	waiting[0] = node{size: points}
	for top := 1; top > 0; {
		n := &waiting[top-1]
		axis := d.nextAxis(n)
		if axis >= d.axes {
			return errData
		}
		left := uint(d.bits) - uint(n.levels[axis])
		if left == 0 || n.size <= 2 {
			if err := d.emit(n, axis, left != 0); err != nil {
				return err
			}
			top--
			continue
		}
		low := n.size / 2
		less := d.numbers.number(uint(31 - bits.LeadingZeros32(n.size)))
		if less > low || d.numbers.exhausted {
			return errData
		}
		low -= less
		high := n.size - low
		if low != high && d.halves.get(1) == 0 {
			low, high = high, low
		}
		n.levels[axis]++
		n.axis = uint8(axis)
		cut := uint32(1) << ((left - 1) & 31)
		if low == 0 {
			n.base[axis] |= cut
			continue
		}
		n.size = low
		if high > 0 {
			upper := &waiting[top]
			top++
			*upper = *n
			upper.size = high
			upper.base[axis] |= cut
		}
	}
	return nil
}

// nextAxis returns the axis at which a node is cut.
func (d *treeDecoder) nextAxis(n *node) int {
	if !d.selects {
		if int(n.axis) == d.axes-1 {
			return 0
		}
		return int(n.axis) + 1
	}
	if n.size >= selectFrom {
		return int(d.selected.get(axisBits))
	}
	axis := 0
	for other := 1; other < d.axes; other++ {
		if n.levels[other] < n.levels[axis] {
			axis = other
		}
	}
	return axis
}

// emit appends the points of a node. If rest is true, the remaining bits of each axis follow, from the given axis on.
func (d *treeDecoder) emit(n *node, first int, rest bool) error {
	for range n.size {
		point := n.base
		if rest {
			axis := first
			for range d.axes {
				point[axis] |= d.rest.get(uint(d.bits) - uint(n.levels[axis]))
				if axis++; axis == d.axes {
					axis = 0
				}
			}
		}
		d.steps |= point[0] | point[1] | point[2]
		d.values |= point[3] | point[4] | point[5]
		d.cloud.Positions = append(d.cloud.Positions, d.grid.position(point[0], point[1], point[2], d.step))
		if d.axes == coloredAxes {
			color := [3]uint8{uint8(point[3]), uint8(point[4]), uint8(point[5])}
			d.cloud.Colors = append(d.cloud.Colors, color)
		}
	}
	if d.rest.exhausted {
		return errData
	}
	return nil
}
