package netem

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrTrace is the sentinel of invalid rate traces. The wrapping error has the line or the step, and the expected value.
var ErrTrace = errors.New("invalid rate trace")

// OutageBPS is the rate in bit/s below which a link counts as down: less than audio and the lowest quality of one
// object need.
const OutageBPS = 1_000_000

// maxTraceDuration bounds a trace, so that sums of its times cannot overflow.
const maxTraceDuration = 1000 * time.Hour

// RateTrace is the rate of a link over time, in steps. Unlike in Config, a rate of 0 is an outage: no packet is
// transmitted until the next step above 0.
type RateTrace struct {
	// Steps are the rates with their start times, the first at 0. Times increase.
	Steps []RateStep
	// Duration is the end of the last step, after its start.
	Duration time.Duration
	// Loop repeats the trace after Duration. Without Loop the last rate, which must then be above 0, continues without
	// end.
	Loop bool
}

// RateStep is the rate of a link from one time on.
type RateStep struct {
	// At is the time since the beginning of the trace.
	At time.Duration
	// RateBPS is in bit/s, headers included.
	RateBPS int
}

// Interval is the time from Start to End, both since the beginning of a trace.
type Interval struct{ Start, End time.Duration }

// Validate reports the first error. It wraps ErrTrace.
func (t *RateTrace) Validate() error {
	if len(t.Steps) == 0 {
		return fmt.Errorf("%w: it has no steps, expected at least one", ErrTrace)
	}
	last := t.Steps[len(t.Steps)-1]
	for i, s := range t.Steps {
		switch {
		case s.RateBPS < 0 || s.RateBPS > maxRateBPS:
			return fmt.Errorf("%w: rate of step %d is %d bit/s, expected 0 to %d", ErrTrace, i, s.RateBPS, maxRateBPS)
		case i == 0 && s.At != 0:
			return fmt.Errorf("%w: it begins at %v, expected 0", ErrTrace, s.At)
		case i > 0 && s.At <= t.Steps[i-1].At:
			return fmt.Errorf("%w: step %d is at %v, expected a time after %v, that of the step before", ErrTrace, i,
				s.At, t.Steps[i-1].At)
		}
	}
	switch {
	case t.Duration <= last.At || t.Duration > maxTraceDuration:
		return fmt.Errorf("%w: its duration is %v, expected more than %v, where the last step begins, to %v", ErrTrace,
			t.Duration, last.At, maxTraceDuration)
	case t.Max() == 0:
		return fmt.Errorf("%w: every rate is 0, expected one above", ErrTrace)
	case !t.Loop && last.RateBPS == 0:
		return fmt.Errorf("%w: the last rate is 0 and holds for ever, expected one above or a loop", ErrTrace)
	}
	return nil
}

// end returns the end of a step.
func (t *RateTrace) end(step int) time.Duration {
	if step+1 < len(t.Steps) {
		return t.Steps[step+1].At
	}
	return t.Duration
}

// RateAt returns the rate in bit/s at a time since the beginning, 0 or later.
func (t *RateTrace) RateAt(at time.Duration) int {
	if at >= t.Duration && t.Loop {
		at %= t.Duration
	}
	after, _ := slices.BinarySearchFunc(t.Steps, at, func(s RateStep, at time.Duration) int {
		if s.At <= at {
			return -1
		}
		return 1
	})
	return t.Steps[after-1].RateBPS
}

// Bits returns the number of bits that the link can carry between two times since the beginning, 0 ≤ from ≤ to.
func (t *RateTrace) Bits(from, to time.Duration) float64 { return t.bitsUntil(to) - t.bitsUntil(from) }

func (t *RateTrace) bitsUntil(at time.Duration) float64 {
	var bits float64
	if beyond := at - t.Duration; beyond > 0 {
		if t.Loop {
			rounds := at / t.Duration
			return float64(rounds)*t.bitsUntil(t.Duration) + t.bitsUntil(at%t.Duration)
		}
		bits = float64(t.Steps[len(t.Steps)-1].RateBPS) * beyond.Seconds()
	}
	for i, s := range t.Steps {
		if s.At >= at {
			break
		}
		bits += float64(s.RateBPS) * (min(t.end(i), at) - s.At).Seconds()
	}
	return bits
}

// Mean returns the mean rate over Duration in bit/s.
func (t *RateTrace) Mean() int { return int(t.Bits(0, t.Duration) / t.Duration.Seconds()) }

// Max returns the highest rate in bit/s.
func (t *RateTrace) Max() int {
	highest := 0
	for _, s := range t.Steps {
		highest = max(highest, s.RateBPS)
	}
	return highest
}

// Outages returns the intervals within Duration with a rate below OutageBPS. Adjacent steps make one interval.
func (t *RateTrace) Outages() []Interval {
	var outages []Interval
	for i, s := range t.Steps {
		switch last := len(outages) - 1; {
		case s.RateBPS >= OutageBPS:
		case last >= 0 && outages[last].End == s.At:
			outages[last].End = t.end(i)
		default:
			outages = append(outages, Interval{s.At, t.end(i)})
		}
	}
	return outages
}
