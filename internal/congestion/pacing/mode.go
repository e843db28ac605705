package pacing

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrMode is the sentinel for an unknown mode. The wrapping error has the text.
var ErrMode = errors.New("unknown pacing mode")

// Mode is the configured pacing of frames. The added latency of a frame that arrives at once is the time for which its
// last packet is held; a frame that arrives spread over time is held only for the rest.
//
//	spread:0.4, or 0.4   over this share of the frame interval, from above 0 to 1: at 30 frames/s 0.4 adds 13.3 ms.
//	                     If the frame takes less time at the estimate, the sender uses little of the estimate, and the
//	                     queue of the path has room for bursts (Path.Leads), over that shorter time: this makes no
//	                     queue, and adds frame size / estimate
//	spread:20ms          over this time, 1 to 100 ms, at any interval (the pacing interval of the L4S prototype):
//	                     adds 20 ms
//	burst5ms             every 5 ms the bytes of 5 ms at 2.5 × the estimate, as GCC does: adds frame size /
//	                     (2.5 × estimate). Without an estimate the frames' own rate is used: adds 0.4 of the interval
//	off                  packets are not held: adds nothing
//
// While the Path is smooth, all modes except off spread a frame over frame size / (1.05 × the estimate).
type Mode string

// The modes without parameters, and the default.
const (
	Off       Mode = "off"
	Burst5ms  Mode = "burst5ms"
	Default   Mode = "spread:0.4"
	spreading      = "spread:"
)

const (
	// tickTime bounds the length of a tick: little compared with the 13 ms over which a frame is spread. Shorter times
	// cannot be kept apart with timers of Go's precision, whose sleeps end at the next millisecond after the due time.
	tickTime = 2 * time.Millisecond
	// tickPackets bounds the packets that leave early in one tick: a segmented send of 16 packets costs 0.75 µs per
	// packet, and longer sends save little more.
	tickPackets = 16
	// burstTime is the interval of GCC's pacer.
	burstTime = 5 * time.Millisecond
	// rateFactor is the send rate of frames as a multiple of the estimate, as in GCC's pacer; 1/2.5 of the interval is
	// 0.4.
	rateFactor = 2.5
	// evenFactor replaces rateFactor if cross traffic keeps the queue of the path full or the queue is short: a frame
	// is spread over 0.8 of its interval. This adds 13 ms of latency at 30 frames/s, but the burst does not overflow
	// the queue and need no repair. Beside three Cubic flows in a FIFO of two bandwidth-delay products a third as many
	// packets are lost, and half as many frames.
	evenFactor = 1.25
	// minSpan and maxSpan bound spread:DURATION. A frame spread over more than 100 ms misses the deadline of 150 ms.
	minSpan, maxSpan = time.Millisecond, 100 * time.Millisecond
)

// Plan is the meaning of a Mode. The zero Plan is that of Off.
type Plan struct {
	// A frame is spread over share of its interval, or over span if span is set.
	share float64
	span  time.Duration
	// Packets due within ahead leave with the current tick, at most most of them.
	ahead time.Duration
	most  int
	// byEstimate is set if packets are due on arrival once there is an estimate, so that only the rate delays them.
	byEstimate bool
	// early is set if packets may leave before they are due while the Path leads, as long as the estimate permits.
	early bool
}

// Plan returns the meaning of the mode, or an error that wraps ErrMode.
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
	return Plan{}, fmt.Errorf("%w %q, expected spread:SHARE with a share of the frame interval up to 1 such as "+
		"spread:0.4, spread:DURATION with %v to %v, %s or %s",
		ErrMode, string(m), minSpan, maxSpan, Burst5ms, Off)
}

// Validate returns an error that wraps ErrMode if the mode is unknown.
func (m Mode) Validate() error {
	_, err := m.Plan()
	return err
}

// Off reports whether packets are never held.
func (p Plan) Off() bool { return p.ahead == 0 }

// Span returns the maximum time over which a frame that has arrived at once is spread: the latency that the plan adds,
// and the longest time that a packet is held while no rate is set.
func (p Plan) Span(interval time.Duration) time.Duration {
	if p.span > 0 {
		return p.span
	}
	return time.Duration(p.share * float64(interval))
}

// tick returns the bytes of one tick at a rate: max(1 packet, min(most packets, the bytes of ahead)).
func (p Plan) tick(rate float64) float64 {
	return max(1, min(float64(p.most)*fullPacket, rate*float64(p.ahead)))
}

// due returns the due time of a packet. limited is set if there is an estimate.
func (p Plan) due(o Offer, limited bool) time.Duration {
	if p.byEstimate && limited {
		return o.Arrived
	}
	return o.Due
}
