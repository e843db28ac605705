package demand

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// parityStep is the step to which shares of parity are rounded up. A smaller step changes no frame of 100 packets.
	parityStep = 0.01
	// parityHold is the minimum time before a share is lowered, so that an encoder does not follow every variation of
	// the loss.
	parityHold = time.Second
)

// Parity is the share of parity packets that a publisher is asked for.
type Parity struct {
	// told is the share last sent to the publisher, at toldAt. needed is the largest share that a receiver needs,
	// including the share for the publisher's own path.
	told, needed float64
	toldAt       time.Time
	// nodes is the largest share that another node needs.
	nodes float64
}

// Told returns the share last sent to the publisher, 0 to 1.
func (p *Parity) Told() float64 { return p.told }

// Reset begins a round of needs with the needs of other nodes.
func (p *Parity) Reset() { p.needed = p.nodes }

// Need states the need of one receiver. The largest need of a round counts.
func (p *Parity) Need(share float64) { p.needed = max(p.needed, share) }

// due reports whether the publisher is to be asked for another share. A share rises at once and falls after parityHold.
func (p *Parity) due(now time.Time) bool {
	share := p.share()
	return share > p.told || share < p.told && now.Sub(p.toldAt) >= parityHold
}

// share returns the needed share, rounded up to a step and limited to signal.MaxParity.
func (p *Parity) share() float64 {
	// A difference from a step that is due to floating-point rounding does not add a step.
	steps := math.Ceil(p.needed/parityStep - 1e-9)
	return min(steps/math.Round(1/parityStep), signal.MaxParity)
}

// settle records the needed share as sent to the publisher if a change is due, and reports whether it was.
func (p *Parity) settle(now time.Time) bool {
	if !p.due(now) {
		return false
	}
	p.told, p.toldAt = p.share(), now
	return true
}
