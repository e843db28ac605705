package realsense

import (
	"time"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

const (
	// maxAge is how old an image of the host's clock may be when it arrives. A camera holds a few images, 100 ms or so; what is older comes
	// from a clock that was set meanwhile, or from a camera that counts from another year.
	maxAge = time.Second
	// window is how long the camera's clock is believed to keep its distance from the host's: crystals are within 50 ppm of each other, 0.5 ms in 10 s.
	window = 10 * time.Second
)

// translation maps a camera's timestamps to the system clock. It is stepped with every image, in the order of their arrival.
//
// Stamps of the host's clock, or translated to it by the library, are taken as they are. A camera's own clock is taken to be as far from the
// host's as the fastest image of the last 10 to 20 seconds says: what the others took longer, they waited on their way.
type translation struct {
	begun       bool
	stamp       time.Duration // the latest, on the camera's clock
	start       time.Duration // of the window under way
	now, before time.Duration // smallest arrival minus stamp of the window under way, and of the one before
	epoch       time.Time     // what arrivals are counted from
}

// capture is when an image was taken that arrived now. The result carries now's monotonic reading and is never later than now.
func (t *translation) capture(stamp float64, domain rs2.Domain, now time.Time) time.Time {
	at := time.Duration(stamp * float64(time.Millisecond))
	if domain != rs2.HardwareClock {
		if age := now.Sub(time.Unix(0, int64(at))); age >= 0 && age <= maxAge {
			return now.Add(-age)
		}
	}
	return now.Add(-t.delay(at, now))
}

// delay is how much longer than the fastest an image was on its way.
func (t *translation) delay(stamp time.Duration, now time.Time) time.Duration {
	if !t.begun || stamp < t.stamp { // a camera that came back counts anew
		*t = translation{begun: true, epoch: now, start: stamp, now: -stamp, before: -stamp}
	}
	t.stamp = stamp
	offset := now.Sub(t.epoch) - stamp
	if stamp-t.start >= window {
		t.start, t.before, t.now = stamp, t.now, offset
	}
	t.now = min(t.now, offset)
	return offset - min(t.now, t.before)
}
