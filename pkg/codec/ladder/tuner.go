package ladder

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// usableShare is the part of the uplink's estimate that is shared out, of the bitrates that
	// qualities are described by. A client takes 95 % for its tracks, wants 10 % to spare for one
	// that returns, and counts the headers of IP, UDP, RTP and SRTP, 6 to 10 %: 0.95/1.1/1.1, with
	// 4 % to spare for sound and for frames above their mean.
	usableShare = 0.75
	// A share that falls by less than fall is left as it is, and one that rises by less than rise:
	// the first within the noise of an estimate, the second within what a client would not find
	// worth a return.
	fallThreshold = 0.95
	riseThreshold = 1.05
	// riseDelay is how long the uplink must carry more before it is used: an estimate that has
	// dropped overshoots on its way up.
	riseDelay = time.Second
	// reviewInterval is how often rungs are held against what the model has learnt since, tolerance
	// how far off their rate may be, downwards and upwards.
	reviewInterval = time.Second
	tooLow         = 0.85
	tooHigh        = 1.05
	// leastExponent keeps qualities apart: a ratio of four becomes one of a half more.
	leastExponent = 0.3
)

// Tuner keeps the rungs of a ladder at their targets, or below where the uplink does not carry these.
type Tuner struct {
	source Source
	wishes []Wish
	rungs  []Rung
	// targets are what the rungs were last found for.
	targets []volumetric.Bitrate

	// carried is the uplink that targets were shared out by, 0 for no limit; wanted who was
	// counted. better is since when it carries more.
	carried  float64
	wanted   []bool
	better   time.Time
	reviewed time.Time
}

// NewTuner makes a tuner of qualities, ascending, and finds their first rungs by the model, at full
// targets. It is false where the model lacks the trials.
func NewTuner(source Source, wishes []Wish, m Model) (*Tuner, bool) {
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

// Rungs are how the qualities are coded now. They change with Step only.
func (t *Tuner) Rungs() []Rung { return t.rungs }

// Targets are the rates that the rungs were found for.
func (t *Tuner) Targets() []volumetric.Bitrate { return t.targets }

// Step takes what the uplink carries, 0 where that is not known, and which qualities are wanted for
// any tile, also those that were given up for want of bandwidth. It tells whether a rung has
// changed.
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

// share shares out what the uplink carries, and tells whether targets have changed.
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

// retune finds a rung again where the model says that it misses its target.
func (t *Tuner) retune(q int, m Model) bool {
	old, wish := t.rungs[q], t.wishes[q]
	wish.Target = t.targets[q]
	expected, known := t.source.rung(m, t.wishes[q].fixed(old), old.Points, old.Speed)
	if !known {
		return false
	}
	off := float64(expected.Rate) / float64(wish.Target)
	late := t.source.Budget > 0 && expected.Took > t.source.Budget
	if off >= tooLow && off <= tooHigh && !late {
		t.rungs[q].Rate, t.rungs[q].Took = expected.Rate, expected.Took
		return false
	}
	next, ok := t.source.Find(m, wish)
	if !ok {
		return false
	}
	t.rungs[q] = next
	return next.Points != old.Points || next.Bits != old.Bits || next.Speed != old.Speed
}

// fixed is the wish with the bits of a rung.
func (w Wish) fixed(r Rung) Wish {
	w.Bits = r.Bits
	return w
}

// Squeeze lowers ascending rates so that they sum up to no more than what is carried, 0 for no
// limit. The lowest stays and the ratios between the others shrink evenly, since a low quality that
// gets lower helps nobody; where that leaves them too close to each other to be worth having, all
// shrink.
func Squeeze(rates []volumetric.Bitrate, carried float64) []volumetric.Bitrate {
	out := append([]volumetric.Bitrate{}, rates...)
	if len(rates) == 0 || carried <= 0 || sum(rates, 1) <= carried {
		return out
	}
	exponent := 1.0
	if len(rates) > 1 {
		exponent = leastExponent
		// Thirty halvings leave less than a bit of a gigabit.
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

// scaledRate is a rate whose ratio to the lowest is raised to a power, times a factor.
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
