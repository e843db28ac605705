package netem

import "time"

// transmitter computes how long a Link is busy with the accepted packets. Its rate is unlimited, constant or that of a
// trace.
type transmitter struct {
	idleAt    time.Time // end of all transmissions, or if outage is set the end of the outage
	outage    bool
	remainder uint64 // rest of rounding idleAt down to nanoseconds, in bits × 1e9

	rate    uint64     // in bit/s at idleAt; 0 = unlimited, or with a trace an outage
	trace   *RateTrace // nil = the rate is constant
	begin   time.Time  // start of the current round of the trace
	step    int        // index of the current step
	stepEnd time.Time  // start of the next step, zero = never
}

// hold makes the rate constant from now on.
func (t *transmitter) hold(rate uint64, now time.Time) {
	t.endOutage(now)
	t.rate, t.trace, t.remainder = rate, nil, 0
}

// follow makes the rate that of a valid trace, which begins now.
func (t *transmitter) follow(trace *RateTrace, now time.Time) {
	t.endOutage(now)
	t.trace, t.begin, t.remainder = trace, now, 0
	t.enter(0)
}

// endOutage ends a current outage before its time.
func (t *transmitter) endOutage(now time.Time) {
	if t.outage {
		t.idleAt, t.outage = now, false
	}
}

// enter makes a step of the trace the current one.
func (t *transmitter) enter(step int) {
	t.step, t.rate = step, uint64(t.trace.Steps[step].RateBPS)
	switch {
	case step+1 < len(t.trace.Steps):
		t.stepEnd = t.begin.Add(t.trace.Steps[step+1].At)
	case t.trace.Loop:
		t.stepEnd = t.begin.Add(t.trace.Duration)
	default:
		t.stepEnd = time.Time{}
	}
}

// seek enters the step at the time idleAt.
func (t *transmitter) seek() {
	for t.trace != nil && !t.stepEnd.IsZero() && !t.idleAt.Before(t.stepEnd) {
		if t.step+1 < len(t.trace.Steps) {
			t.enter(t.step + 1)
		} else {
			t.begin = t.stepEnd
			t.enter(0)
		}
	}
}

// unlimited reports whether sending takes no time.
func (t *transmitter) unlimited() bool { return t.trace == nil && t.rate == 0 }

// rest records that there was nothing to send by now.
func (t *transmitter) rest(now time.Time) {
	if t.idleAt.Before(now) {
		t.idleAt, t.remainder = now, 0
	}
}

// ready reports whether the next packet can be accepted by now, at idleAt. During an outage no packet is accepted, and
// idleAt is the end of the outage.
func (t *transmitter) ready(now time.Time) bool {
	if t.idleAt.After(now) {
		return false
	}
	if t.trace == nil {
		return true
	}
	for t.seek(); t.rate == 0; t.seek() {
		t.idleAt, t.outage = t.stepEnd, true
	}
	return !t.idleAt.After(now)
}

// occupy sends size bytes, at each moment with the rate of that moment. Fractions of a nanosecond add up within a busy
// period, so that the rate is exact.
func (t *transmitter) occupy(size int) {
	if t.unlimited() {
		return
	}
	work := uint64(size)*8*uint64(time.Second) + t.remainder // divided by the rate in bit/s it is a time in nanoseconds
	if t.trace != nil {
		work = t.untilLastStep(work)
	}
	t.idleAt = t.idleAt.Add(time.Duration(work / t.rate))
	t.remainder = work % t.rate
}

// untilLastStep sends the part of the work before the step of the trace in which the work ends, and returns the rest.
func (t *transmitter) untilLastStep(work uint64) (left uint64) {
	t.outage = false
	for t.seek(); !t.stepEnd.IsZero(); t.seek() {
		remaining := uint64(t.stepEnd.Sub(t.idleAt))
		if t.rate > 0 && work/t.rate <= remaining {
			break
		}
		work -= t.rate * remaining
		t.idleAt = t.stepEnd
	}
	return work
}
