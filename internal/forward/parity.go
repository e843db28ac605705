package forward

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// parityInterval is the shortest time between two changes of a receiver's share of parity. Losses are counted over seconds.
	parityInterval = 500 * time.Millisecond
	// Losses and round trips that differ by less than these make no difference to a share, and are not reckoned with anew.
	parityLossStep = 0.002
	parityRTTStep  = 5 * time.Millisecond
)

// protection is the share of parity that a path calls for, and what it follows from. The share is safe for any goroutine.
type protection struct {
	loss float64
	rtt  time.Duration
	// bits are those of the share, a float64.
	bits atomic.Uint64
}

// follow takes the loss of the path and its round-trip time, 0 where that is not known. The deadline of frames is asked for, given the round trip, where they call for
// another share.
func (p *protection) follow(loss float64, rtt time.Duration, deadline func(rtt time.Duration) time.Duration) {
	loss = math.Round(loss/parityLossStep) * parityLossStep
	rtt = rtt.Round(parityRTTStep)
	if loss == p.loss && rtt == p.rtt {
		return
	}
	p.loss, p.rtt = loss, rtt
	p.bits.Store(math.Float64bits(feedback.ParityShare(loss, rtt, deadline(rtt))))
}

// share is the share of parity, 0 to 0.25.
func (p *protection) share() float64 { return math.Float64frombits(p.bits.Load()) }

// ParityShare is how many parity packets per source packet the receiver is sent for the sake of its own path, 0 to 0.25. It follows from what the way to the
// receiver loses and from its round trip: none where requests repair what is lost in time, nor where losses are not known. It is safe for any goroutine.
func (r *Receiver) ParityShare() float64 {
	if r.bare.Load() {
		return 0
	}
	return r.protection.share()
}

// ParityOf is how many parity packets per source packet the receiver is sent of a track, as far as its publisher makes them: for the sake of its own path and of that
// of the publisher, 0.25 at most. It is safe for any goroutine.
func (r *Receiver) ParityOf(t *Track) float64 {
	if r.bare.Load() {
		return 0
	}
	return feedback.JoinParity(r.protection.share(), t.uplinkParity())
}

// uplinkParity is the share that the publisher's path calls for. Only frames of payload v1 have parity.
func (t *Track) uplinkParity() float64 {
	if t == nil || !t.framed {
		return 0
	}
	if i := t.ingress.Load(); i != nil {
		return i.protection.share()
	}
	return 0
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
	r.protection.follow(loss, rtt, func(rtt time.Duration) time.Duration { return w.deadline(r, rtt, 0) })
	for _, s := range r.all() {
		s.protect()
	}
}

// protect makes the slot's share of parity follow the paths to it.
func (s *Slot) protect() { s.switcher.SetParity(s.receiver.ParityOf(s.selection.track)) }

// protect makes the share of parity that the publisher's path calls for follow what was lost between the last two reports on it, given its round-trip time. The
// deadline is the short one, by which receivers on short paths give a frame up: to those a repair over a long uplink comes too late, whatever the ingress waits for.
func (i *Ingress) protect(rtt time.Duration) {
	var expected, lost int64
	for _, s := range i.streams {
		if s.missing != nil && s.track.framed {
			e, l := s.reception.Interval()
			expected, lost = expected+e, lost+l
		}
	}
	i.loss.Add(expected, lost)
	i.protection.follow(i.loss.Share(), rtt, func(time.Duration) time.Duration { return i.engine.cfg.NACK.Deadline })
}
