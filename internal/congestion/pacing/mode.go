package pacing

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrMode is wrapped with the text that is no mode.
var ErrMode = errors.New("unknown pacing mode")

// Mode is how frames are paced, as configured. What it adds to the latency of a frame that arrives at once is what its last packet is held for; a frame that
// arrives spread is held for the rest of it only.
//
//	spread:0.4, or 0.4   over that part of the frame interval, above 0 and at most 1: at 30 frames/s 0.4 adds 13.3 ms; or over the time that it takes at
//	                     the estimate where that is shorter, the sender uses little of the estimate, and its queue takes bursts (Path.Leads): that makes
//	                     no queue, and adds frame size / estimate
//	spread:20ms          over that time, 1 to 100 ms, whatever the interval (the pacing interval of the L4S prototype): adds 20 ms
//	burst5ms             every 5 ms what 2.5 × the estimate allows for 5 ms, as GCC does: adds frame size / (2.5 × estimate), and
//	                     as long as nobody estimates, when the frames' own rate is taken for it, 0.4 of the interval
//	off                  nothing is held: adds nothing
type Mode string

// The modes without parameters, and the one to begin with.
const (
	Off       Mode = "off"
	Burst5ms  Mode = "burst5ms"
	Default   Mode = "spread:0.4"
	spreading      = "spread:"
)

const (
	// tickTime is how long a tick may be: little beside the 13 ms over which a frame is spread. What is below cannot be kept apart where timers are no better than Go's, whose sleeps end at
	// the next millisecond after they are due.
	tickTime = 2 * time.Millisecond
	// tickPackets is how many packets leave early in one tick: a segmented send of 16 costs 0.75 µs per packet, longer ones save little more.
	tickPackets = 16
	// burstTime is the interval of GCC's pacer.
	burstTime = 5 * time.Millisecond
	// rateFactor is how much faster than the estimate frames may leave, as in GCC's pacer; 1/2.5 of the interval is 0.4.
	rateFactor = 2.5
	// evenFactor is that where others keep the queue of the path full, or it is short: a frame is spread over 0.8 of its interval, which adds 13 ms to its latency at 30 frames/s,
	// rather than overflow the queue with its burst and wait for the repair. Beside three flows of Cubic in a FIFO of two bandwidth-delay products a third as many packets are lost, and half as many frames.
	evenFactor = 1.25
	// minSpan and maxSpan bound spread:DURATION. Whoever spreads by more than 100 ms misses the deadline of 150 ms.
	minSpan, maxSpan = time.Millisecond, 100 * time.Millisecond
)

// Plan is what a mode means. The zero Plan is that of Off.
type Plan struct {
	// share of the frame interval over which a frame is spread, or span, which is fixed.
	share float64
	span  time.Duration
	// ahead is how long before they are due packets leave with their tick, and most how many of them.
	ahead time.Duration
	most  int
	// byEstimate says that once there is an estimate it alone tells when packets are due.
	byEstimate bool
	// early says that packets leave before they are due, where the Path leads, as long as the estimate carries what leaves.
	early bool
}

// Plan says what the mode means. The error is ErrMode.
func (m Mode) Plan() (Plan, error) {
	text := string(m)
	switch m {
	case Off:
		return Plan{}, nil
	case Burst5ms:
		return Plan{share: 1 / rateFactor, ahead: burstTime, most: math.MaxInt, byEstimate: true}, nil
	}
	text = strings.TrimPrefix(text, spreading)
	p := Plan{ahead: tickTime, most: tickPackets}
	if share, err := strconv.ParseFloat(text, 64); err == nil && share > 0 && share <= 1 {
		p.share, p.early = share, true
		return p, nil
	}
	if span, err := time.ParseDuration(text); err == nil && span >= minSpan && span <= maxSpan && len(text) < len(m) {
		p.span = span
		return p, nil
	}
	return Plan{}, fmt.Errorf("%w %q, expected spread:PART with a part of the frame interval up to 1 such as spread:0.4, spread:DURATION with %v to %v, %s or %s",
		ErrMode, string(m), minSpan, maxSpan, Burst5ms, Off)
}

// Validate returns ErrMode for a text that is no mode.
func (m Mode) Validate() error {
	_, err := m.Plan()
	return err
}

// Off tells whether packets are never held.
func (p Plan) Off() bool { return p.ahead == 0 }

// Span is the time over which a frame that has arrived at once is spread at most: what the plan adds to its latency, and the longest that it holds a packet
// as long as no rate is set.
func (p Plan) Span(interval time.Duration) time.Duration {
	if p.span > 0 {
		return p.span
	}
	return time.Duration(p.share * float64(interval))
}
