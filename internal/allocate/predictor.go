package allocate

import (
	"math"
	"time"
)

const (
	// velocityTime smooths velocities. Trackers are precise to about a millimetre and 0.1°; over 16 ms that is 60 mm/s
	// and 6°/s of noise, as much as the motion of a head at rest. Over 80 ms, five reports, 12 mm/s and 1.2°/s remain,
	// and the start of a turn is known within 100 ms.
	velocityTime = 80 * time.Millisecond
	// holdAfter is the time without reports after which the last viewpoint is held.
	holdAfter = time.Second
	// A faster change is a jump, not a motion: heads turn at up to 10 rad/s and people run at up to 10 m/s.
	jumpSpeed = 10.0 // m/s
	jumpTurn  = 15.0 // rad/s
	// minInterval is the shortest interval between two reports for which a velocity is computed: over shorter intervals
	// noise dominates.
	minInterval = 4 * time.Millisecond
)

// Predictor predicts the viewpoint of one receiver. The zero value is ready for use. A Predictor belongs to the
// goroutine that calls it.
//
// Position and orientation continue with their smoothed velocities v, with decreasing effect: after a time t without
// reports they have moved by v·t·(1-t/T)² with T = 1 s. That is 81 % of the distance after 100 ms, never more than 148
// ms' worth, and returns to the last report without a jump.
type Predictor struct {
	last     Viewpoint
	rotation rotation
	known    bool
	speed    vector // m/s
	turn     vector // rad/s, in room coordinates
}

// Observe processes a report. A report that is older than the last, a duplicate or not finite is ignored. After a jump
// or a pause of a second the earlier motion does not count.
func (p *Predictor) Observe(v Viewpoint) {
	rotation, ok := newRotation(v.Orientation)
	if !ok || !vector(v.Position).usable() {
		return
	}
	v.Orientation = rotation
	if !p.known {
		p.last, p.rotation, p.known = v, rotation, true
		return
	}
	interval := v.At.Sub(p.last.At)
	if interval < minInterval {
		return
	}
	seconds := interval.Seconds()
	speed := vector(v.Position).minus(p.last.Position).times(1 / seconds)
	turn := rotation.after(p.rotation.inverse()).turn().times(1 / seconds)
	switch {
	case interval >= holdAfter || speed.length() > jumpSpeed || turn.length() > jumpTurn:
		p.speed, p.turn = vector{}, vector{}
	default:
		share := 1 - math.Exp(-seconds/velocityTime.Seconds())
		p.speed = p.speed.mix(speed, share)
		p.turn = p.turn.mix(turn, share)
	}
	p.last, p.rotation = v, rotation
}

// Predict returns the viewpoint at a time, or false before the first report. For times before the last report it
// returns the last report.
func (p *Predictor) Predict(at time.Time) (Viewpoint, bool) {
	if !p.known {
		return Viewpoint{}, false
	}
	v := p.last
	v.At = at
	ahead := at.Sub(p.last.At)
	if ahead <= 0 || ahead >= holdAfter {
		return v, true
	}
	rest := 1 - ahead.Seconds()/holdAfter.Seconds()
	seconds := ahead.Seconds() * rest * rest
	v.Position = vector(v.Position).plus(p.speed.times(seconds))
	v.Orientation, _ = newRotation(rotationBy(p.turn.times(seconds)).after(p.rotation))
	return v, true
}
