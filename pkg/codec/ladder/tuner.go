package ladder

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// usableShare is the share of the uplink's estimate that is allocated to the nominal bit rates
	// of the qualities. A client uses 95 % of the estimate for its tracks, requires a margin of 10
	// % before a track returns, and adds the headers of IP, UDP, RTP and SRTP, 6 to 10 %:
	// 0.95/1.1/1.1, with 4 % left for audio and for frames above the mean.
	usableShare = 0.75
	// A share that falls by less than fallThreshold, or rises by less than riseThreshold, is not
	// changed. The first is within the noise of an estimate; for the second a client would not
	// resume a track.
	fallThreshold = 0.95
	riseThreshold = 1.05
	// riseDelay is the time for which the uplink must carry more before the increase is used. An
	// estimate that has dropped overshoots while it recovers.
	riseDelay = time.Second
	// reviewInterval is the interval at which rungs are compared with newer predictions. tooLow and
	// tooHigh are the tolerated ratios of predicted and target bit rate.
	reviewInterval = time.Second
	tooLow         = 0.85
	tooHigh        = 1.05
	// leastExponent keeps qualities apart: a ratio of four becomes a ratio of one and a half.
	leastExponent = 0.3
)

// Tuner keeps the rungs of a ladder at their target bit rates, or below if the uplink does not
// carry the targets.
type Tuner struct {
	source Finder
	wishes []Wish
	rungs  []Rung
	// targets contains the bit rates for which the rungs were last selected.
	targets []volumetric.Bitrate

	// carried is the uplink capacity for which the targets were computed, 0 for no limit. wanted
	// contains the qualities that were counted. better is the time since which the uplink has
	// carried more.
	carried  float64
	wanted   []bool
	better   time.Time
	reviewed time.Time
}

// NewTuner returns a tuner of qualities in ascending order, with their first rungs at full targets.
// The result is false if the model lacks the trials.
func NewTuner(source Finder, wishes []Wish, m Model) (*Tuner, bool) {
	t := &Tuner{
		source:  source,
		wishes:  wishes,
		rungs:   make([]Rung, len(wishes)),
		targets: make([]volumetric.Bitrate, len(wishes)),
		wanted:  make([]bool, len(wishes)),
	}
	for q, w := range wishes {
		r, ok := source.Find(m, w)
		if !ok {
			return nil, false
		}
		t.rungs[q], t.targets[q] = r, w.Target
		t.wanted[q] = true
	}
	return t, true
}

// Rungs returns the current rungs. They change only in Step.
func (t *Tuner) Rungs() []Rung { return t.rungs }

// Targets returns the bit rates for which the rungs were selected.
func (t *Tuner) Targets() []volumetric.Bitrate { return t.targets }

// Step updates the rungs. uplink is the capacity of the uplink, 0 if unknown. wanted reports for
// each quality whether it is wanted for any tile, including qualities stopped because of
// insufficient bandwidth. Step reports whether a rung changed.
func (t *Tuner) Step(now time.Time, uplink volumetric.Bitrate, wanted []bool, m Model) bool {
	moved := t.share(now, usableShare*float64(uplink), wanted)
	if !moved && now.Sub(t.reviewed) < reviewInterval {
		return false
	}
	t.reviewed = now
	changed := false
	for q := range t.rungs {
		changed = t.retune(q, m) || changed
	}
	return changed
}

// share distributes the capacity of the uplink and reports whether targets changed.
func (t *Tuner) share(now time.Time, carried float64, wanted []bool) bool {
	different := false
	for q, w := range wanted {
		different = different || w != t.wanted[q]
	}
	switch {
	case different || carried > 0 && (t.carried == 0 || carried < fallThreshold*t.carried):
	case t.carried > 0 && (carried == 0 || carried > riseThreshold*t.carried):
		if t.better.IsZero() {
			t.better = now
		}
		if now.Sub(t.better) < riseDelay {
			return false
		}
	default:
		t.better = time.Time{}
		return false
	}
	t.better = time.Time{}
	t.carried = carried
	copy(t.wanted, wanted)
	moved := false
	var counted []volumetric.Bitrate
	for q, w := range t.wishes {
		if wanted[q] {
			counted = append(counted, w.Target)
		}
	}
	counted = Squeeze(counted, carried)
	for q := range t.wishes {
		if wanted[q] {
			moved = moved || t.targets[q] != counted[0]
			t.targets[q], counted = counted[0], counted[1:]
		}
	}
	return moved
}

// retune selects a new rung if the model predicts that the current rung misses its target.
func (t *Tuner) retune(q int, m Model) bool {
	old, wish := t.rungs[q], t.wishes[q]
	wish.Target = t.targets[q]
	expected, known := t.source.Predict(m, wish, old)
	if !known {
		return false
	}
	off := float64(expected.Rate) / float64(wish.Target)
	if off >= tooLow && off <= tooHigh && t.source.InTime(expected) {
		t.rungs[q].Rate, t.rungs[q].Took = expected.Rate, expected.Took
		return false
	}
	next, ok := t.source.Find(m, wish)
	if !ok {
		return false
	}
	t.rungs[q] = next
	return !next.codes(old)
}

// Squeeze lowers ascending bit rates so that their sum is at most carried; 0 means no limit. The
// lowest rate is kept and the ratios between the others are reduced evenly, because a lower lowest
// quality helps no receiver. If the rates would become too similar to be useful, all rates are
// reduced.
func Squeeze(rates []volumetric.Bitrate, carried float64) []volumetric.Bitrate {
	out := append([]volumetric.Bitrate{}, rates...)
	if len(rates) == 0 || carried <= 0 || sum(rates, 1) <= carried {
		return out
	}
	exponent := 1.0
	if len(rates) > 1 {
		exponent = leastExponent
		// Thirty halvings leave an error of less than one bit in a gigabit.
		for high := 1.0; high-exponent > 1e-9; {
			middle := (exponent + high) / 2
			if sum(rates, middle) > carried {
				high = middle
			} else {
				exponent = middle
			}
		}
	}
	factor := min(1, carried/sum(rates, exponent))
	for i := range out {
		out[i] = volumetric.Bitrate(scaledRate(rates, i, exponent, factor))
	}
	return out
}

// scaledRate returns a rate whose ratio to the lowest is raised to a power, times a factor.
func scaledRate(rates []volumetric.Bitrate, i int, exponent, factor float64) float64 {
	low := float64(rates[0])
	return factor * low * math.Pow(float64(rates[i])/low, exponent)
}

func sum(rates []volumetric.Bitrate, exponent float64) float64 {
	total := 0.0
	for i := range rates {
		total += scaledRate(rates, i, exponent, 1)
	}
	return total
}
