package forward

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// parityInterval is the shortest time between two changes of a receiver's share of parity. Losses are counted over seconds.
	parityInterval = 500 * time.Millisecond
	// Losses and round trips that differ by less than these make no difference to the share, and are not reckoned with anew.
	parityLossStep = 0.002
	parityRTTStep  = 5 * time.Millisecond
)

// protection is what a receiver's share of parity follows from.
type protection struct {
	// due is when it is looked at next, loss and rtt are what it was made of.
	due  time.Duration
	loss float64
	rtt  time.Duration
}

// ParityShare is how many parity packets per source packet the receiver is sent of what its publishers make, 0 to 0.25. It follows from what the way to the
// receiver loses and from its round trip: none where requests repair what is lost in time, nor where losses are not known. It is safe for any goroutine.
func (r *Receiver) ParityShare() float64 { return math.Float64frombits(r.parityShare.Load()) }

// protect makes the receiver's share of parity follow its path, and its slots that share.
func (w *writer) protect(r *Receiver) {
	p := &r.protection
	if r.bare || w.at < p.due {
		return
	}
	p.due = w.at + parityInterval
	loss, rtt := 0.0, time.Duration(0)
	if e := r.estimation; e != nil && e.known {
		loss = math.Round(e.counted.Loss/parityLossStep) * parityLossStep
		rtt = e.counted.RTT.Round(parityRTTStep)
	}
	if loss == p.loss && rtt == p.rtt {
		return
	}
	p.loss, p.rtt = loss, rtt
	share := feedback.ParityShare(loss, rtt, w.deadline(r, rtt, 0))
	if share == r.ParityShare() {
		return
	}
	r.parityShare.Store(math.Float64bits(share))
	for _, s := range r.all() {
		s.switcher.SetParity(share)
	}
}
