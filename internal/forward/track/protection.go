package track

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// Losses and round trips that differ by less than these make no difference to a share of parity.
	parityLossStep = 0.002
	parityRTTStep  = 5 * time.Millisecond
)

// Protection is the share of parity that a path calls for, and what the share follows from. One goroutine at a time
// calls Follow. Share is safe for any goroutine.
type Protection struct {
	loss float64
	rtt  time.Duration
	// bits are those of the share, a float64.
	bits atomic.Uint64
}

// Follow takes the loss of the path and its round-trip time, 0 if that is unknown. The deadline of frames, given the
// round trip, is asked for if they may call for another share.
func (p *Protection) Follow(loss float64, rtt time.Duration, deadline func(rtt time.Duration) time.Duration) {
	loss = math.Round(loss/parityLossStep) * parityLossStep
	rtt = rtt.Round(parityRTTStep)
	if loss == p.loss && rtt == p.rtt {
		return
	}
	p.loss, p.rtt = loss, rtt
	p.Set(feedback.ParityShare(loss, rtt, deadline(rtt)))
}

// Set sets the share. It is safe for any goroutine.
func (p *Protection) Set(share float64) { p.bits.Store(math.Float64bits(share)) }

// Share is the share of parity, 0 to 0.25.
func (p *Protection) Share() float64 { return math.Float64frombits(p.bits.Load()) }
