package feedback

import "time"

// MissingBudget bounds how many packets the generators that share it take note of as missing. What a packet skips costs its sender nothing: a few bytes with a number that is
// 16,384 ahead, or a descriptor that claims a frame of 14,665 packets, would have thousands of entries made, moved and asked for. Each packet that comes earns one, and so does
// time. Like the generators it belongs to one goroutine; generators without one are not bounded.
type MissingBudget struct {
	// rate is per second.
	rate, burst, credit float64
	// counted is when time was last counted; the credit begins with the burst.
	counted time.Time
	refused int
}

// NewMissingBudget makes a budget of so many packets at once, and so many per second beside one for each that comes.
func NewMissingBudget(rate, burst int) *MissingBudget {
	return &MissingBudget{rate: float64(rate), burst: float64(burst), credit: float64(burst)}
}

// Earn counts a packet that has come.
func (b *MissingBudget) Earn() { b.credit = min(b.credit+1, b.burst) }

// TakeRefused is how many packets were not taken note of since the last call.
func (b *MissingBudget) TakeRefused() int {
	refused := b.refused
	b.refused = 0
	return refused
}

// take spends so much, and tells whether there was as much.
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

// Share has the generator take note of no more missing packets than a budget allows. Those beyond it are given up at once, and come as Old if they come.
func (g *NACKGenerator) Share(b *MissingBudget) { g.budget = b }
