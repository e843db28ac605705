package switching

import (
	"math"
	"time"
)

const (
	// captureTolerance is how far the distance of two capture times may be from that of their arrivals. Paths and encoders differ by less than
	// a second; clocks of different publishers that differ by more are not set.
	captureTolerance = time.Second
	// jumpTolerance is how far timestamps may run ahead of arrival within one Group before they count as restarted.
	jumpTolerance = 10 * time.Second
)

// timeline maps the timestamps of the tracks onto one that only goes forward. Its constant is chosen when a Group takes over.
type timeline struct {
	rate    float64
	started bool
	group   uint64
	offset  uint32
	// Of the newest frame sent: its output timestamp, the arrival of its first packet and its capture time where known.
	newest  uint32
	arrived time.Time
	capture time.Time
}

// join returns the constant for a run that begins with the packet.
func (t *timeline) join(group uint64, p *Packet, now time.Time) uint32 {
	switch {
	case !t.started:
		t.started = true
		t.offset = t.newest - p.Timestamp
	case group != t.group || !t.continues(p.Timestamp+t.offset, now):
		t.offset = t.newest + t.ticks(t.elapsed(p, now)) - p.Timestamp
	}
	t.group = group
	return t.offset
}

// continues says whether the output timestamp is a sane successor of the newest. It is not where a publisher restarted its clock, or
// where the tracks of a Group do not share one.
func (t *timeline) continues(timestamp uint32, now time.Time) bool {
	ahead := int32(timestamp - t.newest)
	return ahead > 0 && float64(ahead) <= (now.Sub(t.arrived)+jumpTolerance).Seconds()*t.rate
}

// elapsed is the time between the newest frame and that of the packet: by capture where that is known and sane, else by arrival.
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

// ticks converts to the RTP clock: at least 1, and less than half the range, beyond which timestamps would seem to go backwards.
func (t *timeline) ticks(d time.Duration) uint32 {
	return uint32(min(max(math.Round(d.Seconds()*t.rate), 1), math.MaxInt32))
}

// advance notes a packet of the newest run that was sent.
func (t *timeline) advance(p *Packet, now time.Time) {
	timestamp := p.Timestamp + t.offset
	if timestamp == t.newest && !t.arrived.IsZero() || int32(timestamp-t.newest) < 0 {
		return
	}
	t.newest, t.arrived, t.capture = timestamp, now, p.Capture
}
