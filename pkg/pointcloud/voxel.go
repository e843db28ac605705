package pointcloud

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// ErrVoxel says that a cloud cannot be put into voxels of the given size.
var ErrVoxel = errors.New("invalid voxel grid")

// Cells are numbered from -2^20 to 2^20-1 on each axis, so that three of them fit 63 bits: a kilometre either way at 1 mm.
const (
	cellBits   = 21
	cellOrigin = 1 << (cellBits - 1)
)

// VoxelGrid replaces the points of every cube of a grid by one: their mean position and mean colour. The grid stands still in space (a
// corner is at the origin), so that an object at rest gives the same points in every frame. It keeps its working memory; one goroutine
// uses it at a time.
type VoxelGrid struct {
	// table is a hash table with open addressing: cell number + 1, 0 where free; slots has the voxel of each entry.
	table  []uint64
	slots  []uint32
	voxels []voxel
	// used are the entries of the table in use, so that emptying it costs no more than it holds.
	used []uint32
}

// voxel sums up the points of one cell.
type voxel struct {
	// origin is the first point; sums of differences to it keep all digits.
	origin   [3]float32
	position [3]float32
	color    [3]uint32
	count    uint32
}

// Voxelize replaces dst's points by one per voxel that src occupies, in the order in which src comes to them; edge is in metres. A size
// that is not above zero, or so small that a point's cell number exceeds 20 bits, gives an error around ErrVoxel and leaves dst empty.
// Both clouds must be different ones.
func (g *VoxelGrid) Voxelize(src, dst *Cloud, edge float32) error {
	dst.Reset()
	if err := g.fill(src, edge); err != nil {
		return err
	}
	dst.reserve(len(g.voxels))
	for i := range g.voxels {
		v := &g.voxels[i]
		share := 1 / float32(v.count)
		var p [3]float32
		var color [3]uint8
		for axis := range p {
			p[axis] = v.origin[axis] + v.position[axis]*share
			color[axis] = uint8((v.color[axis] + v.count/2) / v.count)
		}
		dst.Append(p, color)
	}
	return nil
}

// Count is the number of voxels that the cloud occupies, with the errors of Voxelize.
func (g *VoxelGrid) Count(src *Cloud, edge float32) (int, error) {
	if err := g.fill(src, edge); err != nil {
		return 0, err
	}
	return len(g.voxels), nil
}

// fill sums up src's points per voxel.
func (g *VoxelGrid) fill(src *Cloud, edge float32) error {
	g.empty()
	if !(edge > 0) || math.IsInf(float64(edge), 0) {
		return fmt.Errorf("%w: voxel edge is %g m, expected more than 0", ErrVoxel, edge)
	}
	g.grow(src.Len())
	inverse := 1 / float64(edge)
	shift := 64 - bits.TrailingZeros(uint(len(g.table)))
	mask := uint32(len(g.table) - 1)
	for i, p := range src.Positions {
		var cell uint64
		for axis := range p {
			c := math.Floor(float64(p[axis])*inverse) + cellOrigin
			if !(c >= 0 && c < 1<<cellBits) {
				g.empty()
				return fmt.Errorf("%w: coordinate %g m with voxels of %g m, expected it within ±%g m", ErrVoxel, p[axis], edge, cellOrigin*edge)
			}
			cell = cell<<cellBits | uint64(c)
		}
		cell++
		// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): 2^64 over the golden ratio; the high bits are the good ones.
		at := uint32(cell * 0x9e3779b97f4a7c15 >> shift)
		for g.table[at] != cell && g.table[at] != 0 {
			at = (at + 1) & mask
		}
		if g.table[at] == 0 {
			g.table[at], g.slots[at] = cell, uint32(len(g.voxels))
			g.used = append(g.used, at)
			g.voxels = append(g.voxels, voxel{origin: p})
		}
		g.voxels[g.slots[at]].add(p, src.Colors[i])
	}
	return nil
}

func (v *voxel) add(p [3]float32, color [3]uint8) {
	for axis := range p {
		v.position[axis] += p[axis] - v.origin[axis]
		v.color[axis] += uint32(color[axis])
	}
	v.count++
}

// empty forgets the voxels and keeps the memory.
func (g *VoxelGrid) empty() {
	for _, at := range g.used {
		g.table[at] = 0
	}
	g.used, g.voxels = g.used[:0], g.voxels[:0]
}

// grow makes the table, while it is empty, at least twice as large as the number of points: probes stay short however few points share a voxel.
func (g *VoxelGrid) grow(points int) {
	size := 1 << bits.Len(uint(max(2*points, 2)-1))
	if size > len(g.table) {
		g.table, g.slots = make([]uint64, size), make([]uint32, size)
	}
}

// EdgeFor finds a voxel edge in metres, within 2 %, at which src occupies the wanted number of voxels or just fewer. It counts some ten
// times, hence belongs to setting up and not to every frame. Where no size gives so many voxels, because points coincide or there are no
// more, the answer is the smallest size tried, a 4,096th of the object; where even the largest gives more, since an object around the
// origin always occupies up to eight, it is twice the object. A wanted number or a cloud of nothing is an error around ErrVoxel.
func (g *VoxelGrid) EdgeFor(src *Cloud, points int) (float32, error) {
	if points < 1 || src.Len() == 0 {
		return 0, fmt.Errorf("%w: %d voxels wanted of %d points, expected at least 1 of each", ErrVoxel, points, src.Len())
	}
	box := src.Bounds()
	reach, extent := float32(0), float32(0)
	for axis := range 3 {
		reach = max(reach, -box.Min[axis], box.Max[axis])
		extent = max(extent, box.Max[axis]-box.Min[axis])
	}
	if extent == 0 {
		return 1, nil
	}
	// The finest size is a 4,096th of the object, or what cell numbers allow, with a margin of two; the coarsest is the object itself.
	low, high := max(extent/4096, 2*reach/cellOrigin), 2*extent
	for high > low*1.02 {
		middle := float32(math.Sqrt(float64(low) * float64(high)))
		count, err := g.Count(src, middle)
		if err != nil {
			return 0, err
		}
		if count > points {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}
