// Package ladder finds how the qualities of a publication are to be coded so that each has a given
// bitrate: how many points, how finely quantised, at which speed; and finds it again while the
// rates that codecs make and what the uplink carries change. It is pure: a model says what frames
// will be, see package model, and a Tuner is stepped with now. A Tuner belongs to one goroutine.
package ladder

import (
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/model"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Model predicts frames; *model.Model does.
type Model interface {
	Predict(c codec.Codec, params codec.Params, points int) (model.Prediction, bool)
}

// Source is what is coded: the same for all rungs of a ladder.
type Source struct {
	Codec codec.Codec
	// Params are those of all rungs, with Box; position bits and speed are found.
	Params codec.Params
	// Tiles share the points and are coded each by itself. FrameRate is how often per second.
	Tiles     int
	FrameRate float64
	// Points are those of a captured frame, all tiles together, and Spacing the mean distance
	// between neighbouring ones, in metres.
	Points  int
	Spacing float32
	// Budget is the time that coding one rung of a frame may take on one processor, all tiles together.
	Budget time.Duration
	// TileOverhead is what every frame of a tile has beside what the codec makes, in bytes;
	// PacketOverhead what packets add to it, as a part.
	TileOverhead   int
	PacketOverhead float64
}

// Wish says what one rung is to be. Bits and Speed are -1 where they are to be found.
type Wish struct {
	Target      volumetric.Bitrate
	Bits, Speed int
}

// Rung is how a quality is coded, all tiles together, and what is expected of it.
type Rung struct {
	Points, Bits, Speed int
	Rate                volumetric.Bitrate
	Took                time.Duration
}

// String is for logs.
func (r Rung) String() string {
	return fmt.Sprintf("%d points, %d bits, speed %d: %v", r.Points, r.Bits, r.Speed, r.Rate)
}

const (
	// minPoints is the smallest rung: a figure of which head, trunk and arms can be told apart.
	minPoints = 200
	// grain is the step of positions over the distance of neighbouring points. Leaving points out
	// puts errors of about a quarter of their distance's square into a cloud, rounding a quarter of
	// the step's: at a half, rounding has a fifth of all errors, and one bit more would cost a
	// tenth of the points.
	stepRatio = 0.5
	// finer is how many more bits there may be where all points fit: steps of an eighth of the
	// distance are beyond what can be seen.
	extraBits = 2
	// leastBits and mostBits bound what is tried: 3 cm and 0.1 mm in a box of 2 m.
	leastBits, mostBits = 6, 14
	// minGain is by how much more points a slower step must have: it takes the processor's time from everything else.
	minGain = 1.05
)

// bits are those whose steps have about the right size for a number of points, of which a surface
// has the more the closer they are.
func (s *Source) bits(points int) int {
	spacing := float64(s.Spacing) * math.Sqrt(float64(s.Points)/float64(points))
	if !(spacing > 0) {
		return mostBits
	}
	exact := math.Log2(float64(s.Params.Range())/(stepRatio*spacing) + 1)
	return int(max(leastBits, min(mostBits, math.Round(exact))))
}

// rung is what coding so many points comes to, if the model knows.
func (s *Source) rung(m Model, w Wish, points, speed int) (Rung, bool) {
	r := Rung{Points: points, Bits: w.Bits, Speed: speed}
	if r.Bits < 0 {
		r.Bits = s.bits(points)
	}
	p, known := m.Predict(s.Codec, s.params(r), max(1, points/s.Tiles))
	bytes := float64(p.Bytes+s.TileOverhead) * (1 + s.PacketOverhead)
	r.Rate = volumetric.Bitrate(8 * bytes * float64(s.Tiles) * s.FrameRate)
	r.Took = p.Took * time.Duration(s.Tiles)
	return r, known
}

func (s *Source) params(r Rung) codec.Params {
	p := s.Params
	p.PositionBits, p.Speed = r.Bits, r.Speed
	return p
}

// steps are the speeds to choose from, ascending.
func (s *Source) steps(w Wish) []int {
	if w.Speed >= 0 {
		return []int{w.Speed}
	}
	return s.Codec.Capabilities().StepsOf(s.Params)
}

// Trials are the rungs to code before anything can be found for a wish, so that the model knows all
// settings that may be chosen.
func (s *Source) Trials(w Wish) []Rung {
	var trials []Rung
	for _, speed := range s.steps(w) {
		for more := 1; more <= extraBits && w.Bits < 0; more++ {
			trials = append(trials, Rung{Points: s.Points, Bits: min(mostBits, s.bits(s.Points)+more), Speed: speed})
		}
		// Two numbers of points per setting show how size and time change with them.
		last := Rung{}
		for points := float64(s.Points); points > minPoints/1.42; points /= math.Sqrt2 {
			r := Rung{Points: max(1, int(points)), Bits: w.Bits, Speed: speed}
			if r.Bits < 0 {
				r.Bits = s.bits(r.Points)
			}
			if r.Bits != last.Bits || r.Points < last.Points/3 {
				trials = append(trials, r)
				last = r
			}
		}
	}
	return trials
}

// Find gives the rung that comes closest to the target from below, within the budget: the one with
// the most points, and where all fit, with finer steps. What is too little for the smallest rung,
// or for what the model knows, gives the smallest. It is false where the model knows nothing of the
// codec.
func (s *Source) Find(m Model, w Wish) (Rung, bool) {
	var best Rung
	found := false
	steps := s.steps(w)
	for i := range steps {
		// From the fastest on.
		speed := steps[len(steps)-1-i]
		r, known := s.most(m, w, speed)
		if !known {
			continue
		}
		if !found || float64(r.Points) > minGain*float64(best.Points) || r.Points == best.Points && r.Bits > best.Bits {
			best, found = r, true
		}
	}
	return best, found
}

// most is the rung with the most points at a speed. Rate and time grow with points, but for a dent
// where bits change, which a search by halving may land on either side of.
func (s *Source) most(m Model, w Wish, speed int) (Rung, bool) {
	fits := func(r Rung) bool { return r.Rate <= w.Target && (s.Budget == 0 || r.Took <= s.Budget) }
	low, high := min(minPoints, s.Points), s.Points
	best, known := s.rung(m, w, low, speed)
	if r, all := s.rung(m, w, high, speed); all && fits(r) {
		for more := 1; more <= extraBits && w.Bits < 0; more++ {
			fine := w
			fine.Bits = min(mostBits, s.bits(high)+more)
			if next, ok := s.rung(m, fine, high, speed); ok && fits(next) {
				r = next
			}
		}
		return r, true
	}
	for high-low > max(1, low/200) {
		middle := low + (high-low)/2
		r, ok := s.rung(m, w, middle, speed)
		if ok && fits(r) {
			low, best, known = middle, r, true
		} else {
			high = middle
		}
	}
	return best, known
}
