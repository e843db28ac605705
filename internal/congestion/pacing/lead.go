package pacing

import "time"

// EarlyRate bounds the rate of packets that leave before they are due, in bit/s, whatever the estimate is. A socket
// with default buffers (208 kB on Linux), as browsers use, holds about 90 packets. A wake-up that is 2 ms late finds 30
// kB, 25 packets, at this rate. At 450 Mbit/s it finds more than the socket holds: 4 % of the frames of a browser on
// this host lost packets.
const EarlyRate = 120_000_000

// lead permits packets to leave before they are due as long as a path with the rate of the estimate would have no
// queue: a frame that is short compared with the estimate is sent in the time that the path needs for it. A frame that
// needs longer at the estimate than the plan's share of the interval leaves by its schedule.
type lead struct {
	// rate is the estimate in bytes per nanosecond, or 0 if the plan has no early packets. bytes may leave early, as of
	// the pacer's last fill; a negative value is the queue on such a path.
	rate, bytes float64
	// open is set while the Path permits early packets. The queue of the path is tracked at all times, because open may
	// be set again at any time.
	open bool
}

// admits reports whether a packet may leave before it is due.
func (l *lead) admits() bool { return l.open && l.bytes > 0 }

// fill adds the bytes that the rate allows. At most one tick is kept, and while packets wait also the allowance for a
// late wake-up.
func (l *lead) fill(passed time.Duration, tick float64, waits bool) {
	if waits && l.open {
		tick += l.rate * float64(slack)
	}
	l.bytes = min(max(l.bytes, -l.rate*float64(maxDebt))+l.rate*float64(passed), tick)
}
