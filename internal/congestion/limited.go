package congestion

import "time"

const (
	// limitedWindow is the window of the budget. A frame takes a fifteenth of it, so the gaps between frames do not
	// matter.
	limitedWindow = 500 * time.Millisecond
	// The sender becomes limited when more than limitedStart of the budget is left, and stops being limited below
	// limitedStop, as in libwebrtc.
	limitedStart = 0.80
	limitedStop  = 0.50
)

// applicationLimited detects that the sender uses less than its estimate. The acknowledged rate then says nothing about
// the path.
//
// The budget grows by a share of the estimate and shrinks by the bytes sent. It is bounded, in both directions, by the
// share over limitedWindow.
type applicationLimited struct {
	share   float64
	target  float64 // bit/s, the share of the estimate
	budget  float64 // bits
	updated time.Duration
	begun   bool
	limited bool
}

// sent subtracts a packet from the budget.
func (l *applicationLimited) sent(now time.Duration, size int) {
	l.step(now)
	l.budget = max(l.budget-8*float64(size), -l.most())
	l.judge()
}

// step advances the time.
func (l *applicationLimited) step(now time.Duration) {
	if !l.begun {
		l.begun, l.updated = true, now
	}
	l.budget = min(l.budget+l.target*(now-l.updated).Seconds(), l.most())
	l.updated = now
	l.judge()
}

func (l *applicationLimited) judge() {
	switch {
	case !l.limited && l.budget > limitedStart*l.most():
		l.limited = true
	case l.limited && l.budget < limitedStop*l.most():
		l.limited = false
	}
}

// estimated sets a new estimate.
func (l *applicationLimited) estimated(rate float64) {
	l.target = l.share * rate
	l.budget = min(max(l.budget, -l.most()), l.most())
}

func (l *applicationLimited) most() float64 { return l.target * limitedWindow.Seconds() }
