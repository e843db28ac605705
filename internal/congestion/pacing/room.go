package pacing

import "time"

// frameSlack bounds how far the sent bytes may be ahead of the estimate. Frames vary in size, and are sent faster than
// the estimate: a frame that fills its interval of 33 ms is ahead by 20 ms at its end. The rest permits short falls of
// the estimate before a frame is skipped.
const frameSlack = 100 * time.Millisecond

// ongoingSlack is the additional lead of frames that have begun: a frame that fills its interval and begins with the
// last byte of frameSlack needs 20 ms. This is the queue on the path of a receiver that is sent too much.
const ongoingSlack = 30 * time.Millisecond

// room limits media to the estimate; the rate of 2.5 times the estimate only shapes it. After the slack is used up,
// media leaves at the estimate: frames that have begun first, then the flow that has waited longest. Frames thus wait
// here, where a frame that has waited for too long can be skipped as a whole, and not in a queue on the path. Packets
// that bypass the pacer count, but do not cause a debt: frames that have begun would stall.
type room struct {
	// rate is the estimate in bytes per nanosecond, bytes the number of bytes that may leave as of the pacer's last
	// fill.
	rate, bytes float64
	// short is set when media had to wait for room, until no packet is queued.
	short bool
	// smooth is set while the Path is smooth: queue decides instead of bytes. burst is that of the Path.
	smooth bool
	burst  uint8
	// tick is the time between two ticks while the Path is smooth.
	tick time.Duration
	// queue is the number of bytes in the queue of a path with the rate of the estimate, as of the pacer's last fill.
	// It is tracked at all times, so that a path that becomes smooth first drains what bursts have left on it.
	queue float64
}

func (r *room) fill(passed time.Duration) {
	passes := r.rate * float64(passed)
	r.bytes = min(r.bytes+passes, max(1, r.rate*float64(frameSlack)))
	r.queue = max(0, min(r.queue, r.rate*float64(maxDebt))-passes)
}

func (r *room) spend(bytes int) {
	r.bytes = max(r.bytes-float64(bytes), r.least()-fullPacket)
	r.queue += float64(bytes)
}

// least is the bound of bytes for frames that have begun.
func (r *room) least() float64 { return -r.rate * float64(ongoingSlack) }

// left returns the bytes that may leave: of packets that begin frames, or of other packets.
func (r *room) left(begins bool) float64 {
	if begins {
		return r.bytes
	}
	return r.bytes - r.least()
}

// admits reports whether there is room for a packet, and otherwise sets short.
func (r *room) admits(begins bool) bool {
	if r.rate == 0 || r.left(begins) > 0 {
		return true
	}
	r.short = true
	return false
}

// lateness is the lateness of a wake-up that does not reduce the rate, in nanoseconds.
func (r *room) lateness() float64 {
	if r.smooth {
		return float64(smoothQueue)
	}
	return float64(slack)
}
