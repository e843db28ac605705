package realsense

import "time"

// stale is the number of frame intervals for which the last image of a camera without new images
// remains in the picture.
const stale = 3

// gathering decides when the images of several cameras form a frame. The reader calls it.
//
// Cameras have their own clocks. A frame is formed once every present camera has a new image, or
// half a frame interval after the first new image. By then, the images of the other cameras are
// available before the next image of the first camera.
type gathering struct {
	interval time.Duration
	cameras  []gathered
	first    time.Time // arrival of the first new image; zero if there is none
}

type gathered struct {
	present bool
	fresh   bool
	capture time.Time // of the latest image; zero if there is none
}

func newGathering(cameras int, interval time.Duration) *gathering {
	return &gathering{interval: interval, cameras: make([]gathered, cameras)}
}

// found and lost record whether a camera is present. The last image of a lost camera is not shown
// again.
func (g *gathering) found(camera int) { g.cameras[camera].present = true }
func (g *gathering) lost(camera int)  { g.cameras[camera] = gathered{} }

// arrived must be called for every image.
func (g *gathering) arrived(camera int, capture, now time.Time) {
	g.cameras[camera].fresh, g.cameras[camera].capture = true, capture
	if g.first.IsZero() {
		g.first = now
	}
}

// ready reports whether a frame is due now. If not, it returns the time of the next check; the zero
// time means after the next image.
func (g *gathering) ready(now time.Time) (bool, time.Time) {
	fresh, waiting := false, false
	for _, c := range g.cameras {
		fresh = fresh || c.fresh
		waiting = waiting || c.present && !c.fresh
	}
	if !fresh {
		g.first = time.Time{}
		return false, time.Time{}
	}
	due := g.first.Add(g.interval / 2)
	return !waiting || !now.Before(due), due
}

// compose selects the images for a frame. compose returns the capture time of the oldest new image, which is the
// capture time of the frame.
func (g *gathering) compose(shown []bool) time.Time {
	var capture, newest time.Time
	for _, c := range g.cameras {
		if c.fresh && (capture.IsZero() || c.capture.Before(capture)) {
			capture = c.capture
		}
		if c.capture.After(newest) {
			newest = c.capture
		}
	}
	for i := range g.cameras {
		c := &g.cameras[i]
		shown[i] = c.fresh || !c.capture.IsZero() && newest.Sub(c.capture) <= stale*g.interval
		c.fresh = false
	}
	g.first = time.Time{}
	return capture
}
