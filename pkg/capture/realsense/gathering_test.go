package realsense

import (
	"slices"
	"testing"
	"time"
)

// conductor feeds a gathering with images of cameras, at times in milliseconds.
type conductor struct {
	t     *testing.T
	g     *gathering
	begin time.Time
}

func conduct(t *testing.T, cameras int) *conductor {
	c := &conductor{t, newGathering(cameras, 30*time.Millisecond), time.Now()}
	for i := range cameras {
		c.g.found(i)
	}
	return c
}

func (c *conductor) at(ms int) time.Time { return c.begin.Add(time.Duration(ms) * time.Millisecond) }

// image arrives 5 ms after its capture.
func (c *conductor) image(camera, ms int) { c.g.arrived(camera, c.at(ms-5), c.at(ms)) }

// waits expects no frame, and a time for the next check, -1 for none before another image.
func (c *conductor) waits(ms, until int) {
	c.t.Helper()
	ready, again := c.g.ready(c.at(ms))
	if ready || again.IsZero() != (until < 0) || until >= 0 && !again.Equal(c.at(until)) {
		c.t.Fatalf(
			"at %d ms: ready is %v, ask again at %v, expected to wait until %d ms",
			ms,
			ready,
			again.Sub(c.begin),
			until,
		)
	}
}

// frame expects a frame with the given capture time and cameras.
func (c *conductor) frame(ms, capture int, shown ...bool) {
	c.t.Helper()
	if ready, _ := c.g.ready(c.at(ms)); !ready {
		c.t.Fatalf("at %d ms: expected a frame", ms)
	}
	got := make([]bool, len(shown))
	if at := c.g.compose(got); !at.Equal(c.at(capture)) || !slices.Equal(got, shown) {
		c.t.Fatalf("at %d ms: frame of %v shows %v, expected %d ms and %v", ms, at.Sub(c.begin), got, capture, shown)
	}
}

func TestOneCamera(t *testing.T) {
	c := conduct(t, 1)
	c.waits(0, -1)
	for ms := 10; ms < 100; ms += 30 {
		c.image(0, ms)
		c.frame(ms, ms-5, true)
		c.waits(ms, -1)
	}
}

func TestCamerasOutOfStep(t *testing.T) {
	c := conduct(t, 2)
	c.image(0, 100)
	c.waits(100, 115)
	c.frame(115, 95, true, false) // the other one has not delivered any yet
	c.image(1, 120)
	c.waits(120, 135)
	for ms := 130; ms < 300; ms += 30 { // the other camera's image now arrives first
		c.image(0, ms)
		c.frame(ms, ms-15, true, true)
		c.image(1, ms+20)
		c.waits(ms+20, ms+35)
	}
}

func TestACameraWithoutImages(t *testing.T) {
	c := conduct(t, 2)
	c.image(1, 0)
	c.image(0, 0)
	c.frame(0, -5, true, true)
	for i := 1; i <= 5; i++ {
		c.image(0, 30*i)
		c.waits(30*i, 30*i+15)
		c.frame(30*i+15, 30*i-5, true, i <= stale)
	}
	c.g.lost(1)
	c.image(0, 180)
	c.frame(180, 175, true, false) // nobody waits for it any more
	c.g.found(1)
	c.image(0, 210)
	c.waits(210, 225)
	c.image(1, 212)
	c.frame(212, 205, true, true)
}

func TestLostWithAnImageWaiting(t *testing.T) {
	c := conduct(t, 2)
	c.image(0, 10)
	c.g.lost(0)
	c.waits(10, -1)
	c.image(1, 40)
	c.frame(40, 35, false, true)
}
