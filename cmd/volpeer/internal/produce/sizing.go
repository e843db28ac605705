package produce

import (
	"math"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// sizing keeps the size of the voxels that each quality is made of at what gives about the points that it is to have.
// The first size is searched for; then a frame corrects the next one, since a surface has as many voxels as fit its
// area. It belongs to the goroutine that encodes.
type sizing struct {
	grid  pointcloud.VoxelGrid
	sizes []voxelSize
}

// voxelSize is what one quality is made of, by the newest frame.
type voxelSize struct {
	// edge is in metres, 0 before it is known. It gives about so many points.
	edge   float32
	points int
	// thinned says that the frame has more points than the quality is to have.
	thinned bool
}

// leastStep and mostStep bound what one frame may change: what is seen of an object changes by more where it comes or
// goes.
const leastStep, mostStep = 0.8, 1.25

func newSizing(qualities int) *sizing { return &sizing{sizes: make([]voxelSize, qualities)} }

// aim has a quality made of so many points of a new frame.
func (s *sizing) aim(q int, cloud *pointcloud.Cloud, points int) (err error) {
	size := &s.sizes[q]
	if size.thinned = points > 0 && points < cloud.Len(); !size.thinned {
		return nil
	}
	if size.edge == 0 {
		if size.edge, err = s.grid.EdgeFor(cloud, points); err != nil {
			return err
		}
	} else if size.points != points {
		size.edge *= float32(math.Sqrt(float64(size.points) / float64(points)))
	}
	size.points = points
	return nil
}

// edge is the size of the voxels of a quality in this frame, 0 where all points are kept.
func (s *sizing) edge(q int) float32 {
	if s == nil || !s.sizes[q].thinned {
		return 0
	}
	return s.sizes[q].edge
}

// correct takes how many points a quality had where it was to have so many.
func (s *sizing) correct(q, had int, wanted float64) {
	if size := &s.sizes[q]; size.thinned && had > 0 && wanted >= 1 {
		size.edge *= float32(max(leastStep, min(mostStep, math.Sqrt(float64(had)/wanted))))
	}
}

// resize learns from the frame that was encoded last how large the voxels of the next one are to be.
func (e *encoder) resize() {
	if e.cutter.sizing == nil {
		return
	}
	whole := 0
	for i := range e.cutter.tiles {
		whole += e.cutter.tiles[i].Len()
	}
	for q := range e.config.Levels {
		had, of := 0, 0
		for tile := range e.cutter.tiles {
			if t := e.track(job{tile, q}); e.fresh[t] {
				had += e.points[t]
				of += e.cutter.tiles[tile].Len()
			}
		}
		if of > 0 {
			e.cutter.sizing.correct(q, had, float64(e.cutter.sizing.sizes[q].points)*float64(of)/float64(whole))
		}
	}
}
