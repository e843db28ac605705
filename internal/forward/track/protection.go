package track

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// Smaller changes of loss and round-trip time do not affect the share of parity.
	parityLossStep = 0.002
	parityRTTStep  = 5 * time.Millisecond
)

// Protection is the share of parity that a path needs, and its inputs. One goroutine at a time calls Follow. Share is
// safe for any goroutine.
type Protection struct {
	loss float64
	rtt  time.Duration
	// bits are the bits of the share, a float64.
	bits atomic.Uint64
}

// Follow updates the share from the loss of the path and its round-trip time, 0 if unknown. deadline returns the
// deadline of frames for a round trip; it is called only if the share may change.
func (p *Protection) Follow(loss float64, rtt time.Duration, deadline func(rtt time.Duration) time.Duration) {
	loss = math.Round(loss/parityLossStep) * parityLossStep
	rtt = rtt.Round(parityRTTStep)
	if loss == p.loss && rtt == p.rtt {
		return
	}
	p.loss, p.rtt = loss, rtt
	p.Set(feedback.ParityShare(loss, rtt, deadline(rtt)))
}

// Set sets the share. Set is safe for any goroutine.
func (p *Protection) Set(share float64) { p.bits.Store(math.Float64bits(share)) }

// Share returns the share of parity, 0 to 0.25.
func (p *Protection) Share() float64 { return math.Float64frombits(p.bits.Load()) }
