package realsense

import "time"

// stale is for how many frame intervals the last image of a camera that gives no new ones stays in the picture.
const stale = 3

// gathering decides when the images of several cameras make a frame. It is stepped by the reader.
//
// Cameras run on clocks of their own. A frame is made once every camera that is there has a new image, or half a frame interval after the
// first one that is new; after that the others' images are waiting when the first camera's next one comes.
type gathering struct {
	interval time.Duration
	cameras  []gathered
	first    time.Time // when the first new image came; zero without one
}

type gathered struct {
	there   bool
	fresh   bool
	capture time.Time // of the latest image; zero without one
}

func newGathering(cameras int, interval time.Duration) *gathering {
	return &gathering{interval: interval, cameras: make([]gathered, cameras)}
}

// found and lost say whether a camera is there. A lost one's last image is not shown again.
func (g *gathering) found(camera int) { g.cameras[camera].there = true }
func (g *gathering) lost(camera int)  { g.cameras[camera] = gathered{} }

// arrived is called with every image.
func (g *gathering) arrived(camera int, capture, now time.Time) {
	g.cameras[camera].fresh, g.cameras[camera].capture = true, capture
	if g.first.IsZero() {
		g.first = now
	}
}

// ready tells whether a frame is to be made now; if not, when to ask again, the zero time for not before another image has come.
func (g *gathering) ready(now time.Time) (bool, time.Time) {
	fresh, waiting := false, false
	for _, c := range g.cameras {
		fresh = fresh || c.fresh
		waiting = waiting || c.there && !c.fresh
	}
	if !fresh {
		g.first = time.Time{}
		return false, time.Time{}
	}
	due := g.first.Add(g.interval / 2)
	return !waiting || !now.Before(due), due
}

// compose takes the images for a frame: which cameras are in it, and when it was captured, which is when the oldest of the new images was.
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
