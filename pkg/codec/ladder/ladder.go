// Package ladder selects the coding parameters of the qualities of a publication so that each quality has a given bit
// rate: the number of points, the quantization and the speed. The package repeats the selection when the bit rates
// of the codec or the capacity of the uplink change. The package is pure: a model predicts frames (see package model),
// and a Tuner is stepped with now. A Tuner belongs to one goroutine.
//
// A Level describes one quality as written by a user: by points, by a share, by voxels or by a bit rate. ParseLevels
// reads levels.
package ladder

import (
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/model"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Model predicts frames. *model.Model implements it.
type Model interface {
	Predict(c codec.Codec, params codec.Params, points int) (model.Prediction, bool)
}

// Finder searches the coding parameters of rungs. *Source and *RasterSource implement it.
type Finder interface {
	// Find returns the best rung for a wish, or the smallest if none is small enough. The result is false if the model
	// knows no rung.
	Find(m Model, w Wish) (Rung, bool)
	// Predict returns a rung for a wish with bit rate and time as the model predicts them, or false if the model does
	// not know the rung.
	Predict(m Model, w Wish, r Rung) (Rung, bool)
	// InTime reports whether a rung is within the budget of time.
	InTime(r Rung) bool
}

// Source describes the input of the encoders. A Source is the same for all rungs of a ladder. It implements Finder.
type Source struct {
	Codec codec.Codec
	// Params contains the parameters of all rungs, including Box. Position bits and speed are
	// selected per rung.
	Params codec.Params
	// Tiles is the number of tiles; they share the points and are coded separately. FrameRate is in
	// frames per second.
	Tiles     int
	FrameRate float64
	// Points is the number of points of a captured frame in all tiles together. Spacing is the mean
	// distance between neighbouring points, in metres.
	Points  int
	Spacing float32
	// Budget is the time for coding one rung of a frame on one processor, all tiles together.
	Budget time.Duration
	// TileOverhead is the number of bytes added to each frame of a tile. PacketOverhead is the
	// relative overhead of packets.
	TileOverhead   int
	PacketOverhead float64
}

// Wish contains the requirements for one rung. If Bits or Speed is -1, its value is selected.
type Wish struct {
	Target      volumetric.Bitrate
	Bits, Speed int
}

// Rung contains the coding parameters of a quality, all tiles together, with the predicted bit rate
// and time. Raster is set for codecs of rasters, and Points, Bits and Speed for codecs of clouds.
type Rung struct {
	Points, Bits, Speed int
	Raster              Raster
	Rate                volumetric.Bitrate
	Took                time.Duration
}

// codes reports whether two rungs have the same coding parameters.
func (r Rung) codes(other Rung) bool {
	r.Rate, r.Took = other.Rate, other.Took
	return r == other
}

// String returns the rung for logs.
func (r Rung) String() string {
	if r.Raster != (Raster{}) {
		return fmt.Sprintf("%v: %v", r.Raster, r.Rate)
	}
	return fmt.Sprintf("%d points, %d bits, speed %d: %v", r.Points, r.Bits, r.Speed, r.Rate)
}

const (
	// minPoints is the number of points of the smallest rung: a figure whose head, trunk and arms
	// are distinguishable.
	minPoints = 200
	// stepRatio is the quantization step relative to the distance of neighbouring points. Omitting
	// points causes an error of about a quarter of the square of their distance; rounding causes a
	// quarter of the square of the step. At a ratio of a half, rounding causes a fifth of all
	// errors, and one more bit would cost a tenth of the points.
	stepRatio = 0.5
	// extraBits is the maximum number of additional bits if all points fit. Steps of an eighth of
	// the distance are finer than visible.
	extraBits = 2
	// leastBits and mostBits are the bounds of the search: 3 cm and 0.1 mm in a box of 2 m.
	leastBits, mostBits = 6, 14
	// minGain is the factor by which a slower step must increase the points, because a slower step
	// takes processor time from everything else.
	minGain = 1.05
)

// bits returns the number of bits with a suitable step for a number of points. The more points a
// surface has, the smaller is their distance.
func (s *Source) bits(points int) int {
	spacing := float64(s.Spacing) * math.Sqrt(float64(s.Points)/float64(points))
	if !(spacing > 0) {
		return mostBits
	}
	exact := math.Log2(float64(s.Params.Range())/(stepRatio*spacing) + 1)
	return int(max(leastBits, min(mostBits, math.Round(exact))))
}

// rung returns the rung for a number of points and a speed. The result is false if the model has no
// prediction.
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

// steps returns the speeds to choose from, ascending.
func (s *Source) steps(w Wish) []int {
	if w.Speed >= 0 {
		return []int{w.Speed}
	}
	return s.Codec.Capabilities().StepsOf(s.Params)
}

// Trials returns the rungs to code before Find can be called for a wish, so that the model knows
// all settings that Find may choose.
func (s *Source) Trials(w Wish) []Rung {
	var trials []Rung
	for _, speed := range s.steps(w) {
		for more := 1; more <= extraBits && w.Bits < 0; more++ {
			trials = append(trials, Rung{Points: s.Points, Bits: min(mostBits, s.bits(s.Points)+more), Speed: speed})
		}
		// Two numbers of points per setting show how size and time depend on the number of points.
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

// Predict implements Finder.
func (s *Source) Predict(m Model, w Wish, r Rung) (Rung, bool) {
	w.Bits = r.Bits
	return s.rung(m, w, r.Points, r.Speed)
}

// InTime implements Finder.
func (s *Source) InTime(r Rung) bool { return s.Budget == 0 || r.Took <= s.Budget }

// Find returns the rung closest to the target from below and within the budget: the rung with the
// most points, and with finer steps if all points fit. If the target is too low for the smallest
// rung, or for every rung that the model knows, Find returns the smallest. The result is false if
// the model knows nothing about the codec.
func (s *Source) Find(m Model, w Wish) (Rung, bool) {
	var best Rung
	found := false
	steps := s.steps(w)
	for i := range steps {
		// The fastest step first.
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

// most returns the rung with the most points at a speed. Bit rate and time increase with the number
// of points, except for a small drop at a change of bits; the binary search may end on either side
// of the drop.
func (s *Source) most(m Model, w Wish, speed int) (Rung, bool) {
	fits := func(r Rung) bool { return r.Rate <= w.Target && s.InTime(r) }
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
