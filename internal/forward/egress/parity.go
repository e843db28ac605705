package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// parityInterval is the shortest time between two changes of a receiver's share of parity. Losses are counted over seconds.
const parityInterval = 500 * time.Millisecond

// ParityShare is how many parity packets per source packet the receiver is sent for the sake of its own path, 0 to 0.25. It follows from what the way to the
// receiver loses and from its round trip: none where requests repair what is lost in time, nor where losses are not known. It is safe for any goroutine.
func (r *Receiver) ParityShare() float64 {
	if r.bare.Load() {
		return 0
	}
	return r.protection.Share()
}

// ParityOf is how many parity packets per source packet the receiver is sent of a track, as far as its publisher makes them: for the sake of its own path and of that
// of the publisher, 0.25 at most. It is safe for any goroutine.
func (r *Receiver) ParityOf(t *track.Track) float64 {
	if r.bare.Load() {
		return 0
	}
	return feedback.JoinParity(r.protection.Share(), t.UplinkParity())
}

// protect makes the share of parity of a receiver's slots follow its path and those of the publishers.
func (w *writer) protect(r *Receiver) {
	if r.bare.Load() || w.at < r.protectDue {
		return
	}
	r.protectDue = w.at + parityInterval
	loss, rtt := 0.0, time.Duration(0)
	if r.sender.Reported() {
		stats := r.sender.Stats()
		loss, rtt = stats.Loss, stats.RTT
	}
	r.protection.Follow(loss, rtt, func(rtt time.Duration) time.Duration { return w.deadline(r, rtt, 0) })
	for _, s := range r.all() {
		s.protect()
	}
}

// protect makes the slot's share of parity follow the paths to it.
func (s *Slot) protect() { s.switcher.SetParity(s.receiver.ParityOf(s.selection.track)) }
