package switching

import (
	"math"
	"time"
)

const (
	// captureTolerance is the tolerated difference between the interval of two capture times and
	// the interval of their arrivals. Paths and encoders differ by less than a second; a larger
	// difference means that the publishers' clocks are not synchronized.
	captureTolerance = time.Second
	// jumpTolerance is the time by which timestamps of one Group may run ahead of the arrival time
	// before they count as restarted.
	jumpTolerance = 10 * time.Second
)

// timeline maps the timestamps of the tracks to one timeline that only advances. The offset is
// chosen when a Group takes over.
type timeline struct {
	rate    float64
	started bool
	// kept is set if the offset is always 0.
	kept   bool
	group  uint64
	offset uint32
	// State of the newest frame sent: its output timestamp, the arrival time of its first packet,
	// and its capture time if known.
	newest  uint32
	arrived time.Time
	capture time.Time
}

// join returns the timestamp offset for a run that begins with the packet.
func (t *timeline) join(group uint64, p *Packet, now time.Time) uint32 {
	switch {
	case t.kept:
		// The timestamps of another Group are unrelated.
		if group != t.group || !t.started {
			t.started, t.newest, t.arrived = true, p.Timestamp, time.Time{}
		}
	case !t.started:
		t.started = true
		t.offset = t.newest - p.Timestamp
	case group != t.group || !t.continues(p.Timestamp+t.offset, now):
		t.offset = t.newest + t.ticks(t.elapsed(p, now)) - p.Timestamp
	}
	t.group = group
	return t.offset
}

// continues reports whether the output timestamp is a plausible successor of the newest. It is not
// if a publisher restarted its clock, or if the tracks of a Group do not share a clock.
func (t *timeline) continues(timestamp uint32, now time.Time) bool {
	ahead := int32(timestamp - t.newest)
	return ahead > 0 && float64(ahead) <= (now.Sub(t.arrived)+jumpTolerance).Seconds()*t.rate
}

// elapsed returns the time between the newest frame and the packet's frame, by capture times if
// they are known and plausible, otherwise by arrival times.
func (t *timeline) elapsed(p *Packet, now time.Time) time.Duration {
	arrival := now.Sub(t.arrived)
	if p.Capture.IsZero() || t.capture.IsZero() {
		return arrival
	}
	capture := p.Capture.Sub(t.capture)
	if capture <= 0 || (capture-arrival).Abs() > captureTolerance {
		return arrival
	}
	return capture
}

// ticks converts a duration to the RTP clock. The result is at least 1 and less than half the range
// of a timestamp, beyond which timestamps would appear to decrease.
func (t *timeline) ticks(d time.Duration) uint32 {
	return uint32(min(max(math.Round(d.Seconds()*t.rate), 1), math.MaxInt32))
}

// advance records a sent packet of the newest run.
func (t *timeline) advance(p *Packet, now time.Time) {
	timestamp := p.Timestamp + t.offset
	if timestamp == t.newest && !t.arrived.IsZero() || int32(timestamp-t.newest) < 0 {
		return
	}
	t.newest, t.arrived, t.capture = timestamp, now, p.Capture
}
