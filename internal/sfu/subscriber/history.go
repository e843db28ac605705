package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// sampleInterval is the time between the samples of a receiver's history, and keptSamples their number: five
	// minutes in 12 kB.
	sampleInterval = time.Second
	keptSamples    = 300
)

// Sample is the state of the path to a receiver at one instant.
type Sample struct {
	// At is in seconds since 1970.
	At       int64              `json:"at"`
	Estimate volumetric.Bitrate `json:"estimate_bps"`
	Target   volumetric.Bitrate `json:"target_bps"`
	Sent     volumetric.Bitrate `json:"sent_bps"`
	// QueueDelay is in milliseconds.
	QueueDelay float64 `json:"queue_delay_ms"`
}

// history is a ring of the latest samples of one receiver.
type history struct {
	samples []Sample
	next    int
	taken   time.Time
}

// due reports whether a sample is due.
func (h *history) due(now time.Time) bool { return now.Sub(h.taken) >= sampleInterval }

// note adds a sample if one is due and the path is known.
func (h *history) note(now time.Time, path egress.Path, target volumetric.Bitrate) {
	if !path.Known || !h.due(now) {
		return
	}
	h.taken = now
	s := Sample{
		At: now.Unix(), Estimate: path.Estimate, Target: target, Sent: path.Sent,
		QueueDelay: inMilliseconds(path.QueueDelay),
	}
	if len(h.samples) < keptSamples {
		h.samples = append(h.samples, s)
		return
	}
	h.samples[h.next] = s
	h.next = (h.next + 1) % keptSamples
}

// all returns the samples, the oldest first.
func (h *history) all() []Sample {
	return append(append(make([]Sample, 0, len(h.samples)), h.samples[h.next:]...), h.samples[:h.next]...)
}
