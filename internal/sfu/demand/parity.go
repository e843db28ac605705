package demand

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// parityStep is the step that shares of parity are rounded up to: less changes no frame of 100 packets.
	parityStep = 0.01
	// parityHold is how long a share is asked for at least before it is lowered, so that an encoder does not follow
	// every swing of the loss.
	parityHold = time.Second
)

// Parity is the share of parity packets that a publisher is asked for.
type Parity struct {
	// told is the share that the publisher was told, at toldAt. needed is the share that the receiver in greatest need
	// asks for, with that of the publisher's own path.
	told, needed float64
	toldAt       time.Time
}

// Told returns the share that the publisher was told, 0 to 1.
func (p *Parity) Told() float64 { return p.told }

// Reset begins a round of needs: nothing is needed yet.
func (p *Parity) Reset() { p.needed = 0 }

// Need states the need of one receiver. The largest of a round counts.
func (p *Parity) Need(share float64) { p.needed = max(p.needed, share) }

// due reports whether the publisher is to be asked for another share. A share rises at once, and falls after a hold
// time.
func (p *Parity) due(now time.Time) bool {
	share := p.share()
	return share > p.told || share < p.told && now.Sub(p.toldAt) >= parityHold
}

// share returns the needed share in whole steps.
func (p *Parity) share() float64 {
	// A share that differs from a step by rounding alone is that step.
	steps := math.Ceil(p.needed/parityStep - 1e-9)
	return min(steps/math.Round(1/parityStep), signal.MaxParity)
}

// settle makes the needed share the one that the publisher is told, and reports whether that is a change.
func (p *Parity) settle(now time.Time) bool {
	if !p.due(now) {
		return false
	}
	p.told, p.toldAt = p.share(), now
	return true
}
