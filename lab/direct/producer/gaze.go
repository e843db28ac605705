package producer

import (
	"sync"

	"github.com/volsfu/volsfu/internal/peer/worth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Gaze is where the consumer looks, and what of the object is worth sending there. It is safe for concurrent use, but
// for Thin, which is the encoder's.
type Gaze struct {
	field   pointcloud.FieldOfView
	sampler *worth.Sampler
	box     volumetric.BoundingBox

	mu    sync.Mutex
	known bool
	view  pointcloud.Viewpoint
}

// NewGaze is that of somebody of whom nothing is known yet, on an object within a box, of whose regions the whole
// object is in one. A field without regions makes everything worth sending. The sampler has each point for itself; it
// is nil where single points do not matter.
func NewGaze(field pointcloud.FieldOfView, sampler *worth.Sampler, box volumetric.BoundingBox) *Gaze {
	return &Gaze{field: field, sampler: sampler, box: box}
}

// Thin gives the points of a cloud that are worth sending one by one, valid until the next call.
func (g *Gaze) Thin(cloud *pointcloud.Cloud) *pointcloud.Cloud {
	g.mu.Lock()
	view, known := g.view, g.known
	g.mu.Unlock()
	if !known || g.sampler == nil {
		return cloud
	}
	return g.sampler.Sample(cloud, view)
}

// Look takes a viewpoint.
func (g *Gaze) Look(v *signal.Viewpoint) {
	// The eye looks along -z, turned by its quaternion: the third column of the rotation, negated.
	x, y, z, w := v.Orientation[0], v.Orientation[1], v.Orientation[2], v.Orientation[3]
	view := pointcloud.Viewpoint{
		Position: [3]float32{float32(v.Position[0]), float32(v.Position[1]), float32(v.Position[2])},
		Forward:  [3]float32{float32(-2 * (x*z + y*w)), float32(-2 * (y*z - x*w)), float32(2*(x*x+y*y) - 1)},
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known, g.view = true, view
}

// Limit is the largest part of the points that is worth sending, 0 to 1.
func (g *Gaze) Limit() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.known || len(g.field.Maxima) == 0 {
		return 1
	}
	return g.field.Limit(g.view, g.box)
}
