package realsense

import (
	"time"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

const (
	// maxAge is the maximum age at arrival of an image with a stamp of the host's clock. A camera
	// buffers a few images, about 100 ms. A higher age means that the clock was set meanwhile, or
	// that the camera counts from a different year.
	maxAge = time.Second
	// window is the time for which the offset between the clocks of camera and host is assumed
	// constant: crystals agree within 50 ppm, which is 0.5 ms in 10 s.
	window = 10 * time.Second
)

// translation maps a camera's timestamps to the system clock. The translation is called for every image, in the order
// of arrival.
//
// Stamps of the host's clock, or translated to it by the library, remain unchanged. For a camera's
// own clock, the offset is that of the fastest image of the last 10 to 20 seconds; the additional
// delay of other images is attributed to the transfer.
type translation struct {
	begun       bool
	stamp       time.Duration // the latest stamp, on the camera's clock
	start       time.Duration // start of the current window
	now, before time.Duration // minimum of arrival minus stamp in the current window, and in the previous one
	epoch       time.Time     // origin of arrival times
}

// capture returns the capture time of an image that arrived now. The result has the monotonic
// reading of now and is never later than now.
func (t *translation) capture(stamp float64, domain rs2.Domain, now time.Time) time.Time {
	at := time.Duration(stamp * float64(time.Millisecond))
	if domain != rs2.HardwareClock {
		if age := now.Sub(time.Unix(0, int64(at))); age >= 0 && age <= maxAge {
			return now.Add(-age)
		}
	}
	return now.Add(-t.delay(at, now))
}

// delay returns the transfer time of an image beyond the transfer time of the fastest image.
func (t *translation) delay(stamp time.Duration, now time.Time) time.Duration {
	if !t.begun || stamp < t.stamp { // a camera that has returned starts again
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
