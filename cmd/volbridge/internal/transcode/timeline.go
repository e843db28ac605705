package transcode

import (
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libopus"
)

const (
	// drift is how far sound may be from the times that are claimed for it, in the mean: the length of a frame. A sound
	// card that is off by 100 parts in a million takes 200 s for it.
	drift = 20 * time.Millisecond
	// pause is from when on what is claimed is another time, and no error any more: VR2Gather's times are read when an
	// image is drawn, and late by some of those.
	pause = 200 * time.Millisecond
	// smoothing is the number of packets over which errors are averaged: a third of a second.
	smoothing = 16
)

// timeline gives sound times that follow each other without gaps, as receivers need them. Those that are claimed for
// packets jitter by milliseconds.
type timeline struct {
	begun bool
	// next is when what comes next begins, off how far what is claimed is from that, in the mean.
	next time.Time
	off  time.Duration
}

// take takes sound that lasts so long, and is claimed to begin at a time. It tells when it begins, and whether it
// follows what came before.
func (t *timeline) take(claimed time.Time, long time.Duration) (begin time.Time, follows bool) {
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
	t.next = begin.Add(long)
	return begin, follows
}

// lasting is how long so many samples last.
func lasting(samples int) time.Duration {
	return time.Duration(samples) * time.Second / libopus.Rate
}

// reel holds samples until they make a frame of 20 ms, which both codecs have here.
type reel struct {
	timeline
	samples []float32
	// begin is when the first of the samples was captured.
	begin time.Time
}

// add takes samples that end at a time, as is claimed. What is left of a frame from before a pause is dropped.
func (r *reel) add(samples []float32, end time.Time) {
	begin, follows := r.take(end.Add(-lasting(len(samples))), lasting(len(samples)))
	if !follows {
		r.samples = r.samples[:0]
	}
	r.begin = begin.Add(-lasting(len(r.samples)))
	r.samples = append(r.samples, samples...)
}

// full tells whether there is a frame.
func (r *reel) full() bool { return len(r.samples) >= libopus.FrameSamples }

// frame is the first frame, and when it begins.
func (r *reel) frame() ([]float32, time.Time) { return r.samples[:libopus.FrameSamples], r.begin }

// wind removes the first frame.
func (r *reel) wind() {
	r.samples = append(r.samples[:0], r.samples[libopus.FrameSamples:]...)
	r.begin = r.begin.Add(lasting(libopus.FrameSamples))
}
