package congestion

import "time"

const (
	// limitedWindow is the time whose budget is kept account of. Frames take a fifteenth of it: the gaps between them do not matter.
	limitedWindow = 500 * time.Millisecond
	// The sender becomes limited once so much of the budget has been left, and is not any more below the second, as in libwebrtc.
	limitedStart = 0.80
	limitedStop  = 0.50
)

// applicationLimited tells whether the sender uses less than its estimate: then what is acknowledged says nothing about the path.
//
// It keeps a budget that grows by a share of the estimate and shrinks by what is sent, within what the share amounts to over limitedWindow, both ways.
type applicationLimited struct {
	share   float64
	target  float64 // bit/s, the share of the estimate
	budget  float64 // bits
	updated time.Duration
	begun   bool
	limited bool
}

// sent takes a packet.
func (l *applicationLimited) sent(now time.Duration, size int) {
	l.step(now)
	l.budget = max(l.budget-8*float64(size), -l.most())
	l.judge()
}

// step lets time pass.
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

// estimated takes a new estimate.
func (l *applicationLimited) estimated(rate float64) {
	l.target = l.share * rate
	l.budget = min(max(l.budget, -l.most()), l.most())
}

func (l *applicationLimited) most() float64 { return l.target * limitedWindow.Seconds() }
