package pointcloud

import (
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// surroundings assigns points to classes of weight by the points' surroundings.
type surroundings struct {
	color, shape float64
	cell         float32
	// least is the logarithm of the lowest weight, step the logarithm of the factor between two
	// classes; step is 0 if there is only one weight.
	least, step float64
	// labels contains the numbers of classes that label factors add, by label. labels is nil without factors.
	labels []int16

	workerGroup workerGroup
	grids       []grid
	// class contains the class of each cell, before labels are added.
	class []uint8
	// low is the lowest corner of the cloud's box, edge the edge of a cell, inverse the reciprocal of edge, and strides
	// the index distance of neighbouring cells along each axis.
	low     [3]float32
	edge    float32
	inverse float32
	strides [3]int
	// every is the interval of the points that are gathered: 2 gathers every second point.
	every int
	src   *Cloud
	steps struct{ gather, rate func(worker, begin, end int) }
}

// maxGathered is the maximum number of points from which surroundings are computed; larger clouds are sampled at equal
// intervals. These are 15 points in each of the 4,000 cells of 12 mm of a person seen from one side. With products up
// to 2^14 the sums fit 32 bits.
const maxGathered = 1 << 16

// maxCells limits the grid: 4 MB per worker for the slots. For larger objects the cells grow.
const maxCells = 1 << 20

// maxGrids limits the number of workers with a grid of their own.
const maxGrids = 4

// set stores the weights.
func (s *surroundings) set(config ImportanceConfig, least, step float64) {
	s.color, s.shape, s.cell, s.least, s.step = config.Color, config.Shape, config.Cell, least, step
	if len(config.Labels) > 0 && step > 0 {
		s.labels = make([]int16, math.MaxUint16+1)
		for label, factor := range config.Labels {
			s.labels[label] = int16(math.Round(math.Log(factor) / step))
		}
	}
}

// survey computes the classes of all cells. Cells without gathered points count as plain. survey returns false for a
// cloud that is not finite.
func (s *surroundings) survey(src *Cloud) bool {
	if s.steps.gather == nil {
		s.steps.gather, s.steps.rate = s.gatherRange, s.rateRange
	}
	box := src.Bounds()
	if size := [3]float32{box.Max[0] - box.Min[0], box.Max[1] - box.Min[1], box.Max[2] - box.Min[2]}; !finite(size) {
		return false
	}
	size := s.layOut(box)
	s.every = 1 + (src.Len()-1)/maxGathered
	gathered := src.Len() / s.every
	workers := min(s.workerGroup.size(gathered), maxGrids)
	if len(s.grids) < workers {
		s.grids = append(s.grids, make([]grid, workers-len(s.grids))...)
	}
	for i := range s.grids {
		s.grids[i].reset(size)
	}
	s.class = resize(s.class, size)
	plain := s.classOf(1)
	for cell := range s.class {
		s.class[cell] = plain
	}
	s.src = src
	s.workerGroup.do(gathered, workers, s.steps.gather)
	for i := range s.grids[1:] {
		s.grids[0].merge(&s.grids[i+1])
	}
	s.workerGroup.do(len(s.grids[0].cells), s.workerGroup.size(len(s.grids[0].cells)), s.steps.rate)
	s.src = nil
	return true
}

// layOut places the grid around a box, with an empty cell on all sides, and returns the number of
// cells.
func (s *surroundings) layOut(box volumetric.BoundingBox) int {
	for s.edge = s.cell; ; s.edge *= 1.26 { // twice the volume
		size := 1.0
		for axis := range 3 {
			size *= math.Floor(float64(box.Max[axis]-box.Min[axis])/float64(s.edge)) + 4
		}
		if size <= maxCells {
			break
		}
	}
	s.low, s.inverse = box.Min, 1/s.edge
	x, y, z := s.toParts(box.Max)
	size := 1
	for axis, last := range [3]int32{x, y, z} {
		s.strides[axis] = size
		size *= int(last>>partBits) + 2
	}
	return size
}

// gridMargin is the distance of the grid's corner from the box on each axis: one and a half cells.
const gridMargin = parts + parts/2

// toParts returns a position in fractions of cells from the grid's corner. The position is first taken relative to the
// box, and the margin is added last: far from the origin, where a float has no digits for a cell, a corner outside of
// the box would be rounded onto the box.
func (s *surroundings) toParts(p [3]float32) (x, y, z int32) {
	scale := s.inverse * parts
	x, y, z = int32((p[0]-s.low[0])*scale), int32((p[1]-s.low[1])*scale), int32((p[2]-s.low[2])*scale)
	return x + gridMargin, y + gridMargin, z + gridMargin
}

// at returns the index of the cell that contains a position in fractions of cells.
func (s *surroundings) at(x, y, z int32) int32 {
	return x>>partBits + y>>partBits*int32(s.strides[1]) + z>>partBits*int32(s.strides[2])
}

// gatherRange adds points to the sums of cells.
func (s *surroundings) gatherRange(worker, begin, end int) {
	g := &s.grids[worker]
	for i := begin; i < end; i++ {
		p, color := s.src.Positions[i*s.every], s.src.Colors[i*s.every]
		// Brightness of sRGB as in JPEG (Rec. ITU-T T.871).
		light := (299*int32(color[0])+587*int32(color[1])+114*int32(color[2]))/1000 - 128
		x, y, z := s.toParts(p)
		g.sum(s.at(x, y, z)).add([3]int32{x&(parts-1) - parts/2, y&(parts-1) - parts/2, z&(parts-1) - parts/2}, light)
	}
}

// rateRange computes the classes of cells.
func (s *surroundings) rateRange(_, begin, end int) {
	g := &s.grids[0]
	for i := begin; i < end; i++ {
		cell := g.cells[i]
		var around moments
		around.add(&g.sums[i], 0, 0)
		for axis, stride := range s.strides {
			for away := -1; away <= 1; away += 2 {
				if slot := g.slots[int(cell)+away*stride]; slot > 0 {
					around.add(&g.sums[slot-1], axis, int64(away))
				}
			}
		}
		s.class[cell] = s.classOf(1 + s.color*around.edge() + s.shape*around.curvature())
	}
}

// classOf returns the class of a weight.
func (s *surroundings) classOf(weight float64) uint8 {
	if s.step == 0 {
		return 0
	}
	return uint8(min(weightSteps-1, math.Round((math.Log(weight)-s.least)/s.step)))
}

// Assign implements assigner.
func (s *surroundings) Assign(src *Cloud, begin int, into []uint8) {
	labels := src.Labels
	if s.labels == nil || len(labels) == 0 {
		for i, p := range src.Positions[begin : begin+len(into)] {
			into[i] = s.class[s.at(s.toParts(p))]
		}
		return
	}
	for i, p := range src.Positions[begin : begin+len(into)] {
		class := int16(s.class[s.at(s.toParts(p))]) + s.labels[labels[begin+i]]
		into[i] = uint8(max(0, min(class, weightSteps-1)))
	}
}
