package depth

import (
	"math"
	"runtime"
	"sync"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// optics contains the values per pixel that follow from a camera and its background. Projectors of
// one camera share it.
type optics struct {
	camera     Camera
	background Background
	cleaning   Cleaning
	// rays contains, per unit of depth, the vectors from the camera to the points seen by each
	// pixel, in the world.
	rays   [][3]float32
	origin [3]float32
	// object contains the depths of each pixel that are not background.
	object []interval
	// joints contains, for a pixel's depth, the depths of a neighbour on the same surface.
	joints []joint
}

func newOptics(camera Camera, background Background, cleaning Cleaning) *optics {
	o := &optics{
		camera: camera, background: background, cleaning: cleaning,
		rays:   make([][3]float32, camera.Width*camera.Height),
		object: make([]interval, camera.Width*camera.Height),
		joints: newJoints(cleaning.EdgeRatio),
	}
	for axis, t := range camera.Pose.Translation {
		o.origin[axis] = float32(t)
	}
	var group sync.WaitGroup
	threads := runtime.GOMAXPROCS(0)
	for t := range threads {
		group.Go(func() { o.fill(t*camera.Height/threads, (t+1)*camera.Height/threads) })
	}
	group.Wait()
	return o
}

// fill computes the rays and depths of a range of rows.
func (o *optics) fill(first, end int) {
	c := &o.camera
	turn := Pose{Rotation: c.Pose.Rotation}
	far := o.background.Far
	if far == 0 {
		far = math.MaxUint16 * c.Unit
	}
	for v := first; v < end; v++ {
		for u := range c.Width {
			i := v*c.Width + u
			x, y, ok := c.Deproject(float64(u), float64(v))
			if !ok {
				o.object[i] = nothing
				continue
			}
			ray := turn.Apply([3]float64{x, -y, -1})
			nearest, farthest := o.background.Near, far
			if o.background.Box != (volumetric.BoundingBox{}) {
				enter, leave := within(o.background.Box, c.Pose.Translation, ray)
				nearest, farthest = max(nearest, enter), min(farthest, leave)
			}
			o.object[i] = reach(nearest, farthest, c.Unit)
			o.rays[i] = [3]float32{float32(ray[0] * c.Unit), float32(ray[1] * c.Unit), float32(ray[2] * c.Unit)}
		}
	}
}
