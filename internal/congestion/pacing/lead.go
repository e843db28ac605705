package pacing

import "time"

// EarlyRate bounds what leaves before it is due, in bit/s, whatever the estimate: sockets hold some 90 packets where nobody has asked for more (the 208 kB of Linux), and a
// browser does not. A wake-up that is late by 2 ms finds 30 kB, 25 packets, at this rate, and at 450 Mbit/s more than the socket holds: 4 % of the frames of a browser on this host lost something.
const EarlyRate = 120_000_000

// lead lets packets leave before they are due as long as nothing of what has left would still wait on a path that carries the estimate, and not more: a frame that is short
// beside the estimate is through in the time that the path takes for it, and makes no queue there. One that takes longer than the plan's share of the interval at the estimate
// leaves by its schedule.
type lead struct {
	// rate is the estimate in bytes per nanosecond, 0 where the plan lets nothing leave early. bytes are what may leave early as of the pacer's last fill;
	// below 0 they are what waits on such a path.
	rate, bytes float64
	// open says that the Path lets packets lead. What waits on the path is kept account of while it does not, since it may do so again at any time.
	open bool
}

// admits tells whether a packet may leave before it is due.
func (l *lead) admits() bool { return l.open && l.bytes > 0 }

// fill adds what the rate has allowed. A tick of it is kept, and while packets wait for it what a late wake-up needs.
func (l *lead) fill(passed time.Duration, tick float64, waits bool) {
	if waits && l.open {
		tick += l.rate * float64(slack)
	}
	l.bytes = min(max(l.bytes, -l.rate*float64(maxDebt))+l.rate*float64(passed), tick)
}
