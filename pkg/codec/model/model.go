// Package model predicts the size and the encoding time of frames from the frames that were encoded
// earlier by the same program. The package is pure: measurements go in and predictions come out. A
// Model belongs to one goroutine.
package model

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
)

// Observation describes one encoded frame: the number of points, the parameters, the size in bytes
// and the encoding time.
type Observation struct {
	Codec  codec.Codec
	Params codec.Params
	Points int
	Bytes  int
	Took   time.Duration
}

// Prediction is the predicted size in bytes and time of a frame.
type Prediction struct {
	Bytes int
	// Took is the mean time. Most is a time that is rarely exceeded: the mean plus three times the
	// mean deviation.
	Took, Most time.Duration
}

// setting contains the parameters that affect the coding of points. Positions are coded in a box,
// which is the same for all frames of a publication.
type setting struct {
	codec               codec.FourCC
	bits, step, quality int
	plain, sequential   bool
}

func settingOf(c codec.Codec, p codec.Params) setting {
	can := c.Capabilities()
	s := setting{codec: c.FourCC(), bits: p.PositionBits, step: can.Step(p), plain: p.NoColors || !can.Colors}
	s.sequential = p.Sequential && len(can.SequentialSteps) > 0
	if !can.ExactColors && !s.plain {
		if s.quality = p.ColorQuality; s.quality == 0 {
			s.quality = codec.DefaultColorQuality
		}
	}
	return s
}

// Model contains the observed costs, by codec and parameters.
type Model struct {
	learnt map[setting]*costs
}

// New returns a model without observations.
func New() *Model { return &Model{learnt: make(map[setting]*costs)} }

// costs contains the costs of one setting.
type costs struct {
	// size is bits per point over the logarithm of the number of points. A tree codes common bits
	// of neighbours once, so that each doubling of the points saves about the same number of bits.
	size line
	// time is nanoseconds per point over the inverse of the number of points: a constant time per
	// frame plus a time per point.
	time line
	// deviation is the mean relative deviation of the times from their predictions.
	deviation mean
}

const (
	// memoryFrames is the number of frames that count: one second at 30 frames per second in four
	// tiles. The model follows a scene that changes within this time.
	memoryFrames = 120
	// slopeOfSize is the saving per doubling of the points, in bits per point, that is assumed
	// after observations of only one number of points. An unordered set saves at least this,
	// because its n! orders are equivalent.
	slopeOfSize = -1
	// slopeOfTime is the time of a frame before its first point, in nanoseconds: calls, tables and
	// markers.
	slopeOfTime = 20_000
	// firstDeviation is the assumed deviation of times after the first frame, when caches are cold.
	firstDeviation = 0.5
	// deviationFactor is the number of mean deviations between the prediction and Most, as between
	// round trips and time-outs (RFC 6298 uses four).
	deviationFactor = 3
	// maxPrediction limits predictions, so that they are finite for any observations.
	maxPrediction = time.Hour
)

// Observe adds a frame. Frames without points, bytes or time are ignored.
func (m *Model) Observe(o Observation) {
	if o.Points <= 0 || o.Took <= 0 || o.Bytes <= 0 {
		return
	}
	key := settingOf(o.Codec, o.Params)
	c := m.learnt[key]
	if c == nil {
		c = &costs{
			size:      line{prior: slopeOfSize},
			time:      line{prior: slopeOfTime, least: 0, bounded: true},
			deviation: mean{value: firstDeviation},
		}
		m.learnt[key] = c
	} else if expected := c.took(o.Points); expected > 0 {
		c.deviation.add(math.Abs(float64(o.Took)/expected - 1))
	}
	n := float64(o.Points)
	c.size.add(math.Log2(n), 8*float64(o.Bytes)/n)
	c.time.add(1/n, float64(o.Took)/n)
}

func (c *costs) took(points int) float64 {
	n := float64(points)
	return max(0, c.time.at(1/n)) * n
}

// Predict predicts a frame with the given number of points. The result is false if no frame of the
// codec with these parameters was observed. Speeds that make no difference to the codec share their
// observations.
func (m *Model) Predict(c codec.Codec, params codec.Params, points int) (Prediction, bool) {
	learnt, known := m.learnt[settingOf(c, params)]
	if !known || points <= 0 {
		return Prediction{}, known
	}
	n := float64(points)
	took := learnt.took(points)
	size := math.Ceil(max(0, learnt.size.at(math.Log2(n))) * n / 8)
	return Prediction{
		Bytes: int(min(size, math.MaxInt32)),
		Took:  time.Duration(min(took, float64(maxPrediction))),
		Most:  time.Duration(min(took*(1+deviationFactor*learnt.deviation.value), float64(maxPrediction))),
	}, true
}

// line is a straight line fitted to recent values: least squares with decaying weights (Haykin,
// Adaptive Filter Theory, 10.2). A prior slope is assumed until values far enough apart show
// another slope.
type line struct {
	// prior is the assumed slope. If bounded is set, the slope is at least least.
	prior, least float64
	bounded      bool

	weight, x, y, xx, xy float64
}

// priorWeight is the weight of the prior slope, relative to the weight of one frame at the distance
// of the mean: the prior counts like one remembered frame whose distance from the mean is the
// square root of priorWeight.
const priorWeight = 0.02

// smallestScale replaces the square of the mean if all values are 0, as the logarithm of one point is. smallestScale is
// far below the square of the inverse of any number of points.
const smallestScale = 1e-30

func (l *line) add(x, y float64) {
	const keep = 1 - 1./memoryFrames
	l.weight = l.weight*keep + 1
	l.x = l.x*keep + x
	l.y = l.y*keep + y
	l.xx = l.xx*keep + x*x
	l.xy = l.xy*keep + x*y
}

func (l *line) at(x float64) float64 {
	meanX, meanY := l.x/l.weight, l.y/l.weight
	spread := max(0, l.xx-l.x*meanX)
	// The weight of the prior is relative to the square of the mean, because x may have any unit.
	prior := priorWeight * max(meanX*meanX, smallestScale)
	slope := (l.xy - l.x*meanY + prior*l.prior) / (spread + prior)
	if l.bounded {
		slope = max(slope, l.least)
	}
	return meanY + slope*(x-meanX)
}

// mean is an exponentially weighted mean with an initial value.
type mean struct{ value float64 }

// deviationGain is the gain of RFC 6298 for deviations.
const deviationGain = 1. / 4

func (m *mean) add(v float64) { m.value += deviationGain * (v - m.value) }
