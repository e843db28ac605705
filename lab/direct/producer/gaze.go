package producer

import (
	"sync"

	"github.com/volsfu/volsfu/internal/peer/lod"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Gaze has the consumer's viewpoint and the points of the object that are worth sending to it. It is safe for
// concurrent use, except for Thin, which is called by the encoder.
type Gaze struct {
	field   pointcloud.FieldOfView
	sampler *lod.Sampler
	box     volumetric.BoundingBox

	mu    sync.Mutex
	known bool
	view  pointcloud.Viewpoint
}

// NewGaze returns a Gaze without a viewpoint, for an object within a box. field weighs the whole object by the region
// of its centre; a field without regions gives the object full weight. sampler weighs each point; it is nil if points
// are not weighed individually.
func NewGaze(field pointcloud.FieldOfView, sampler *lod.Sampler, box volumetric.BoundingBox) *Gaze {
	return &Gaze{field: field, sampler: sampler, box: box}
}

// Thin returns the points of a cloud that are worth sending individually. The result is valid until the next call.
func (g *Gaze) Thin(cloud *pointcloud.Cloud) *pointcloud.Cloud {
	g.mu.Lock()
	view, known := g.view, g.known
	g.mu.Unlock()
	if !known || g.sampler == nil {
		return cloud
	}
	return g.sampler.Sample(cloud, view)
}

// Look sets the viewpoint.
func (g *Gaze) Look(v *signal.Viewpoint) {
	// The view direction is -z rotated by the quaternion: the negated third column of the rotation matrix.
	x, y, z, w := v.Orientation[0], v.Orientation[1], v.Orientation[2], v.Orientation[3]
	view := pointcloud.Viewpoint{
		Position: [3]float32{float32(v.Position[0]), float32(v.Position[1]), float32(v.Position[2])},
		Forward:  [3]float32{float32(-2 * (x*z + y*w)), float32(-2 * (y*z - x*w)), float32(2*(x*x+y*y) - 1)},
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known, g.view = true, view
}

// Limit returns the largest fraction of points that is worth sending, 0 to 1.
func (g *Gaze) Limit() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.known || len(g.field.Maxima) == 0 {
		return 1
	}
	return g.field.Limit(g.view, g.box)
}
