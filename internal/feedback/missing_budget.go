package feedback

import "time"

// MissingBudget bounds the number of packets that its generators record as missing. A gap costs its sender nothing: a
// few bytes with a number that is 16,384 ahead, or a descriptor of a frame of 14,665 packets, would cause thousands of
// entries and requests. Each received packet adds one to the budget, and time adds more. The budget belongs to one
// goroutine, as the generators do; generators without a budget are not bounded.
type MissingBudget struct {
	// rate is per second.
	rate, burst, credit float64
	// counted is the time of the last increase; the credit starts with burst.
	counted time.Time
	refused int
}

// NewMissingBudget returns a budget of burst packets at once and rate packets per second, in addition to one for each
// received packet.
func NewMissingBudget(rate, burst int) *MissingBudget {
	return &MissingBudget{rate: float64(rate), burst: float64(burst), credit: float64(burst)}
}

// Earn counts a received packet.
func (b *MissingBudget) Earn() { b.credit = min(b.credit+1, b.burst) }

// TakeRefused returns the number of packets that were not recorded since the last call.
func (b *MissingBudget) TakeRefused() int {
	refused := b.refused
	b.refused = 0
	return refused
}

// take spends n packets of the budget and reports whether they were available.
func (b *MissingBudget) take(n int, now time.Time) bool {
	if b == nil {
		return true
	}
	if elapsed := now.Sub(b.counted); elapsed > 0 {
		b.credit = min(b.credit+elapsed.Seconds()*b.rate, b.burst)
		b.counted = now
	}
	if float64(n) > b.credit {
		b.refused += n
		return false
	}
	b.credit -= float64(n)
	return true
}

// Share assigns a budget to the generator. Missing packets beyond the budget are given up at once, and count as Old if
// they arrive.
func (g *NACKGenerator) Share(b *MissingBudget) { g.budget = b }
