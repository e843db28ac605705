package pointcloud

import (
	"errors"
	"fmt"
	"math"
)

// ErrVoxel reports that a cloud cannot be divided into voxels of the given size.
var ErrVoxel = errors.New("invalid voxel grid")

// Cells are numbered from -2^20 to 2^20-1 on each axis, so that three numbers fit 63 bits: one
// kilometre in each direction at 1 mm.
const (
	cellBits   = 21
	cellOrigin = 1 << (cellBits - 1)
)

// VoxelGrid replaces the points in every cube of a grid by one point: their mean position and mean colour, the label of
// more than half of the points (any of their labels if none has that share), and all cameras that saw any of the
// points. The grid is fixed in space (a corner is at the origin), so that an object at rest results in the same points
// in every frame. VoxelGrid uses all processors and keeps working memory. One goroutine at a time uses a VoxelGrid.
type VoxelGrid struct {
	workerGroup workerGroup
	// cells contains the number of each point's cell. Each shard contains the voxels of a part of
	// the cells.
	cells  []uint64
	shards []shard
	// src, dst and inverse (the reciprocal of the edge) are the input of the current call. failed
	// contains each worker's first point without a cell, or -1.
	src, dst *Cloud
	inverse  float64
	failed   []int
	steps    struct{ number, fill, write func(worker, begin, end int) }
}

// Voxelize replaces dst's points by one point per voxel that src occupies, in the order of the
// voxels' first points. edge is in metres. If the edge is not above zero, or so small that a cell
// number exceeds 20 bits, the error wraps ErrVoxel and dst is empty. src and dst must be different
// clouds.
func (g *VoxelGrid) Voxelize(src, dst *Cloud, edge float32) error {
	dst.Reset()
	if err := g.fill(src, edge); err != nil {
		return err
	}
	dst.resize(g.occupied(), src)
	g.src, g.dst = src, dst
	g.workerGroup.do(len(g.shards), len(g.shards), g.steps.write)
	g.src, g.dst = nil, nil
	return nil
}

// Count returns the number of voxels that the cloud occupies, with the errors of Voxelize.
func (g *VoxelGrid) Count(src *Cloud, edge float32) (int, error) {
	if err := g.fill(src, edge); err != nil {
		return 0, err
	}
	return g.occupied(), nil
}

func (g *VoxelGrid) occupied() int {
	sum := 0
	for i := range g.shards {
		sum += len(g.shards[i].voxels)
	}
	return sum
}

// fill adds src's points to the voxels.
func (g *VoxelGrid) fill(src *Cloud, edge float32) error {
	if g.steps.number == nil {
		g.steps.number, g.steps.fill, g.steps.write = g.numberRange, g.fillShard, g.writeShard
	}
	if !(edge > 0) || math.IsInf(float64(edge), 0) {
		return fmt.Errorf("%w: voxel edge is %g m, expected more than 0", ErrVoxel, edge)
	}
	n := src.Len()
	workers := g.workerGroup.size(n)
	g.cells, g.failed = resize(g.cells, n), resize(g.failed, workers)
	if len(g.shards) < workers {
		g.shards = append(g.shards[:cap(g.shards)], make([]shard, workers)...)
	}
	g.shards = g.shards[:workers]
	g.src, g.inverse = src, 1/float64(edge)
	defer func() { g.src = nil }()
	g.workerGroup.do(n, workers, g.steps.number)
	for _, i := range g.failed {
		if i >= 0 {
			return fmt.Errorf(
				"%w: point at %v m with voxels of %g m, expected it within ±%g m",
				ErrVoxel,
				src.Positions[i],
				edge,
				cellOrigin*edge,
			)
		}
	}
	g.workerGroup.do(workers, workers, g.steps.fill)
	return nil
}

// numberRange computes the numbers of the points' cells, counted from 1.
func (g *VoxelGrid) numberRange(worker, begin, end int) {
	g.failed[worker] = -1
	for i, p := range g.src.Positions[begin:end] {
		var cell uint64
		for axis := range p {
			c := math.Floor(float64(p[axis])*g.inverse) + cellOrigin
			if !(c >= 0 && c < 1<<cellBits) {
				g.failed[worker] = begin + i
				return
			}
			cell = cell<<cellBits | uint64(c)
		}
		g.cells[begin+i] = cell + 1
	}
}

// fillShard adds the points of one shard's cells.
func (g *VoxelGrid) fillShard(worker, _, _ int) {
	s := &g.shards[worker]
	s.reset()
	workers := uint64(len(g.shards))
	labels, sources := g.src.Labels, g.src.Sources
	for i, cell := range g.cells {
		hash := hashOf(cell)
		// The upper half of the hash, as a fraction, selects the shard; the lower half selects the entry in the table
		// of the shard.
		if hash>>32*workers>>32 != uint64(worker) {
			continue
		}
		v := s.voxel(cell, hash, i, g.src.Positions[i])
		v.add(g.src.Positions[i], g.src.Colors[i])
		if len(labels) > 0 {
			v.vote(labels[i])
		}
		if len(sources) > 0 {
			v.sources |= sources[i]
		}
	}
}

// writeShard writes the points of one shard's voxels. The index of a point is the number of voxels
// in all shards with an earlier first point.
func (g *VoxelGrid) writeShard(worker, _, _ int) {
	s := &g.shards[worker]
	s.before = resize(s.before, len(g.shards))
	before := s.before
	clear(before)
	for i := range s.voxels {
		v, at := &s.voxels[i], i
		for other := range g.shards {
			if other == worker {
				continue
			}
			voxels := g.shards[other].voxels
			for before[other] < len(voxels) && voxels[before[other]].first < v.first {
				before[other]++
			}
			at += before[other]
		}
		v.write(g.dst, at)
	}
}

// EdgeFor returns a voxel edge in metres, accurate to 2 %, at which src occupies the given number of voxels or slightly
// fewer. EdgeFor counts about ten times and is therefore meant for configuration, not for every frame. If no size
// results in that many voxels, because points coincide or are too few, the result is the smallest size tried, a 4,096th
// of the object. If even the largest size results in more voxels, the result is twice the object; an object around the
// origin always occupies up to eight voxels. The error wraps ErrVoxel if points is below 1 or the cloud is empty.
func (g *VoxelGrid) EdgeFor(src *Cloud, points int) (float32, error) {
	if points < 1 || src.Len() == 0 {
		return 0, fmt.Errorf(
			"%w: %d voxels requested of %d points, expected at least 1 of each",
			ErrVoxel,
			points,
			src.Len(),
		)
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
	// The finest size is a 4,096th of the object, or the limit of cell numbers with a margin of
	// two. The coarsest size is twice the object.
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
