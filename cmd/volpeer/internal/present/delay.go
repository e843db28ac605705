package present

import "time"

// Delay computes the playout delay of one participant: the time from capture to display or playback. The target is the
// 99th percentile of the lateness of each stream plus a margin, for the latest stream. The delay rises to the target at
// once, because frames are lost until then. The delay falls slowly, so that audio can be time-stretched inaudibly.
//
// The delay is at least one frame interval. The delay is at most the median arrival of first packets plus the repair
// deadline, because frames that are still incomplete then are never completed. If that bound falls, for example because
// a queue has drained, the delay falls to the bound at once: frames do not wait longer than the deadline, and audio
// that fell slowly would lag behind for seconds.
type Delay struct {
	// deadline is the time for which frames are repaired after the first packet.
	deadline time.Duration
	// interval is the longest frame interval of all streams.
	interval time.Duration
	streams  map[string]*stream

	set     bool
	current time.Duration
	at      time.Time
}

// stream has the lateness of one stream, relative to capture.
type stream struct {
	// begun is the arrival of the first packet, ready the completion of decoding.
	begun, ready window
}

const (
	// lateQuantile is the fraction of frames that the delay covers.
	lateQuantile = 0.99
	// margin covers timer inaccuracy and scheduling delays.
	margin = 5 * time.Millisecond
	// fallRate is the decrease of the delay per second: 1 %, an inaudible acceleration of speech.
	fallRate = 10 * time.Millisecond
	// usualInterval is used if a publication states no frame rate.
	usualInterval = time.Second / 30
)

// NewDelay returns the delay of a participant whose frames are repaired until the deadline.
func NewDelay(deadline time.Duration) *Delay {
	return &Delay{deadline: deadline, streams: make(map[string]*stream)}
}

// observe adds an observation of a stream: the lateness of the first packet and of the complete frame.
func (d *Delay) observe(name string, begun, ready time.Duration) {
	s := d.streams[name]
	if s == nil {
		s = &stream{}
		d.streams[name] = s
	}
	s.begun.add(begun)
	s.ready.add(ready)
}

// forget removes a stream.
func (d *Delay) forget(name string) { delete(d.streams, name) }

// At returns the delay at now.
func (d *Delay) At(now time.Time) time.Duration {
	target, limit, known := d.target()
	switch {
	case !known:
		return max(d.current, d.interval)
	case !d.set || target >= d.current:
		d.set, d.current = true, target
	default:
		fallen := time.Duration(float64(fallRate) * now.Sub(d.at).Seconds())
		d.current = max(target, min(limit, d.current-max(0, fallen)))
	}
	if now.After(d.at) {
		d.at = now
	}
	return d.current
}

// target returns the desired delay and the upper limit. known is false before the first observation.
func (d *Delay) target() (target, limit time.Duration, known bool) {
	var base time.Duration
	for _, s := range d.streams {
		begun := s.begun.quantile(0.5)
		late := min(s.ready.quantile(lateQuantile)+margin, begun+d.deadline)
		if !known {
			target, limit, base, known = late, begun+d.deadline, begun, true
		}
		target, limit, base = max(target, late), max(limit, begun+d.deadline), min(base, begun)
	}
	// A publisher whose clock is ahead has capture times in the future. Then the lower bound is shifted by the same
	// amount.
	return max(target, d.interval+min(base, 0)), limit, known
}
