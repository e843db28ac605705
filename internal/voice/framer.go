package voice

import (
	"time"

	"github.com/volsfu/volsfu/internal/voice/libopus"
)

const (
	// drift is the largest mean difference between the generated and the claimed times: the length of a frame. A sound
	// card that is off by 100 ppm reaches it after 200 s.
	drift = 20 * time.Millisecond
	// pause is the difference from which a claimed time is a pause and not an error. VR2Gather reads its times when an
	// image is drawn; they are late by a few images.
	pause = 200 * time.Millisecond
	// smoothing is the number of packets over which the difference is averaged: a third of a second.
	smoothing = 16
)

// timeline assigns contiguous times to audio, as receivers need them. The claimed times of packets jitter by
// milliseconds.
type timeline struct {
	begun bool
	// next is the begin of the next packet. off is the mean difference of the claimed times from next.
	next time.Time
	off  time.Duration
}

// assign adds audio with a claimed begin and a duration. assign returns the assigned begin, and whether the audio
// continues the previous one.
func (t *timeline) assign(claimed time.Time, duration time.Duration) (begin time.Time, follows bool) {
	off := claimed.Sub(t.next)
	switch {
	case !t.begun || off.Abs() >= pause:
		*t = timeline{begun: true, next: claimed}
	default:
		follows = true
		if t.off += (off - t.off) / smoothing; t.off.Abs() > drift {
			t.next, t.off = t.next.Add(t.off), 0
		}
	}
	begin = t.next
	t.next = begin.Add(duration)
	return begin, follows
}

// Framer collects samples for frames of 20 ms, the frame length of Opus and VR2Gather's audio.
type Framer struct {
	timeline
	samples []float32
	// begin is the capture time of the first sample.
	begin time.Time
}

// Add adds samples that end at the claimed time. After a pause, an incomplete frame is discarded.
func (r *Framer) Add(samples []float32, end time.Time) {
	begin, follows := r.assign(end.Add(-libopus.Duration(len(samples))), libopus.Duration(len(samples)))
	if !follows {
		r.samples = r.samples[:0]
	}
	r.begin = begin.Add(-libopus.Duration(len(r.samples)))
	r.samples = append(r.samples, samples...)
}

// Full reports whether a complete frame is available.
func (r *Framer) Full() bool { return len(r.samples) >= libopus.FrameSamples }

// Frame returns the first frame and its begin.
func (r *Framer) Frame() ([]float32, time.Time) {
	return r.samples[:libopus.FrameSamples], r.begin
}

// Pop removes the first frame.
func (r *Framer) Pop() {
	r.samples = append(r.samples[:0], r.samples[libopus.FrameSamples:]...)
	r.begin = r.begin.Add(libopus.Duration(libopus.FrameSamples))
}
