package pacing

import "time"

// frameSlack is how far what leaves may be ahead of the estimate. Frames vary, and leave faster than the estimate: one that fills its interval of 33 ms is ahead by
// 20 ms when it is through. What remains lets the estimate dip before a frame is left out.
const frameSlack = 100 * time.Millisecond

// ongoingSlack is how far frames that have begun may go beyond that: one that fills its interval and begins with the last byte of the slack needs 20 ms of it. It is
// what a receiver that is given too much has in the queue of its path.
const ongoingSlack = 30 * time.Millisecond

// room is what keeps media within the estimate, while the rate of 2.5 times that only shapes it: once it has used up its slack it leaves at the estimate, frames
// that have begun before others, and of these the one first whose flow has been waiting for longest. So frames wait here, where one that has waited for too long
// can be left out whole, and not in a queue on the path. What leaves past the pacer counts, but nothing is owed for it: frames under way would stand still.
type room struct {
	// rate is the estimate in bytes per nanosecond, bytes what may leave as of the pacer's last fill.
	rate, bytes float64
	// short says that media has had to wait for room, until nothing waits any more.
	short bool
}

func (r *room) fill(passed time.Duration) {
	r.bytes = min(r.bytes+r.rate*float64(passed), max(1, r.rate*float64(frameSlack)))
}

func (r *room) spend(bytes int) {
	r.bytes = max(r.bytes-float64(bytes), r.least()-fullPacket)
}

// least is down to where frames that have begun go on.
func (r *room) least() float64 { return -r.rate * float64(ongoingSlack) }

// left is what may leave of packets that begin frames, or go on with them.
func (r *room) left(begins bool) float64 {
	if begins {
		return r.bytes
	}
	return r.bytes - r.least()
}

// admits tells whether there is room for such a packet, which is to wait otherwise.
func (r *room) admits(begins bool) bool {
	if r.rate == 0 || r.left(begins) > 0 {
		return true
	}
	r.short = true
	return false
}
