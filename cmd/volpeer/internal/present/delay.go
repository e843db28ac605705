package present

import "time"

// Delay is the playout delay of one participant: how long after its capture something is shown or played. It follows
// how late the streams are: their 99th percentile and a margin, whichever stream is the latest. It rises at once, since
// what comes late is lost until then, and falls slowly, so that sound can be stretched to follow without being heard.
//
// It lies between one frame interval and the deadline after the first packets' usual arrival: what has not come by then
// never will. Where that arrival becomes earlier, as when a queue has drained, it falls to the new bound at once:
// frames do not wait beyond the deadline, and sound that fell slowly would be behind them for seconds.
type Delay struct {
	// deadline is how long frames are repaired after their first packet.
	deadline time.Duration
	// interval is the longest frame interval of the streams.
	interval time.Duration
	streams  map[string]*stream

	set     bool
	current time.Duration
	at      time.Time
}

// stream is how late one stream is, from capture.
type stream struct {
	// begun is when the first packet came, ready when all was decoded.
	begun, ready window
}

const (
	// lateQuantile is the part of frames that the delay waits for.
	lateQuantile = 0.99
	// margin is what timers and a busy processor add.
	margin = 5 * time.Millisecond
	// fallRate is how fast the delay falls, per second: speech that is 1 % faster sounds the same.
	fallRate = 10 * time.Millisecond
	// usualInterval is taken where a publication does not state its frame rate.
	usualInterval = time.Second / 30
)

// NewDelay makes the delay of a participant whose frames are repaired until the deadline.
func NewDelay(deadline time.Duration) *Delay {
	return &Delay{deadline: deadline, streams: make(map[string]*stream)}
}

// observe takes how late something of a stream was: its first packet, and all of it.
func (d *Delay) observe(name string, begun, ready time.Duration) {
	s := d.streams[name]
	if s == nil {
		s = &stream{}
		d.streams[name] = s
	}
	s.begun.add(begun)
	s.ready.add(ready)
}

// forget ends a stream.
func (d *Delay) forget(name string) { delete(d.streams, name) }

// At is the delay at a time.
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

// target is what the delay should be, limit what it may be at most.
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
	// A publisher whose clock is ahead gives captures in the future: then the bound lies there, too.
	return max(target, d.interval+min(base, 0)), limit, known
}
