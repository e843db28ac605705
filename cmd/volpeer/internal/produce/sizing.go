package produce

import (
	"math"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// sizing adjusts the voxel size of each quality to the intended number of points. The first size is searched. After
// that, each frame corrects the size for the next frame: the number of voxels of a surface is proportional to the area
// divided by the square of the edge. sizing is owned by the encoding goroutine.
type sizing struct {
	grid  pointcloud.VoxelGrid
	sizes []voxelSize
}

// voxelSize is the voxel size of one quality, according to the newest frame.
type voxelSize struct {
	// edge is the voxel size in metres, 0 if unknown. edge yields about points points.
	edge   float32
	points int
	// thinned is set if the frame has more points than the quality is to have.
	thinned bool
}

// leastStep and mostStep bound the change of the size per frame. Larger changes of the number of points are caused by
// objects that enter or leave the view.
const leastStep, mostStep = 0.8, 1.25

func newSizing(qualities int) *sizing { return &sizing{sizes: make([]voxelSize, qualities)} }

// aim sets the intended number of points of a quality for a new frame.
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

// edge returns the voxel size of a quality in this frame, 0 if all points are kept.
func (s *sizing) edge(q int) float32 {
	if s == nil || !s.sizes[q].thinned {
		return 0
	}
	return s.sizes[q].edge
}

// correct adjusts the size of a quality that had had points instead of wanted.
func (s *sizing) correct(q, had int, wanted float64) {
	if size := &s.sizes[q]; size.thinned && had > 0 && wanted >= 1 {
		size.edge *= float32(max(leastStep, min(mostStep, math.Sqrt(float64(had)/wanted))))
	}
}

// resize corrects the voxel sizes for the next frame, by the frame that was encoded last.
func (e *encoder) resize() {
	if e.cutter == nil || e.cutter.sizing == nil {
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
