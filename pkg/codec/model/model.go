// Package model learns while a program runs how large the frames of a codec are and how long they
// take, and says so of frames that are not encoded yet. It is pure: what was measured goes in,
// predictions come out. A Model belongs to one goroutine.
package model

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
)

// Observation is one encoded frame: as many points, coded with the parameters, in so many bytes and
// within so much time.
type Observation struct {
	Codec  codec.Codec
	Params codec.Params
	Points int
	Bytes  int
	Took   time.Duration
}

// Prediction is what a frame will be.
type Prediction struct {
	Bytes int
	// Took is the mean time, Most what it rarely exceeds: the mean and three times the mean deviation.
	Took, Most time.Duration
}

// setting is what makes a difference to how points are coded. Positions are coded in a box, which
// is the same for all frames of a publication.
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

// Model is what was learnt, by codec and parameters.
type Model struct {
	learnt map[setting]*costs
}

// New makes a model that knows nothing.
func New() *Model { return &Model{learnt: make(map[setting]*costs)} }

// costs are those of one setting.
type costs struct {
	// size is bits per point over the logarithm of points: a tree codes the bits that neighbours
	// share once, so that each doubling saves about as much.
	size line
	// time is nanoseconds per point over one over points: what every frame takes stands beside what every point does.
	time line
	// deviation is how far times are from what was predicted, as a part of that.
	deviation mean
}

const (
	// memoryFrames is how many frames count: a second's at 30 per second in four tiles. What was
	// learnt follows a scene that changes within it.
	memoryFrames = 120
	// slopeOfSize is what a doubling of points saves in bits per point where one number of points
	// was seen only: what it saves in an unordered set at least, since n! orders of it are the
	// same.
	slopeOfSize = -1
	// slopeOfTime is what a frame takes in nanoseconds before its first point: calls, tables and markers.
	slopeOfTime = 20_000
	// firstDeviation stands for what is not known of times after the first frame: caches are cold then.
	firstDeviation = 0.5
	// deviationFactor is how many mean deviations lie between a prediction and what is rarely
	// exceeded, as between round trips and time-outs (RFC 6298 has four).
	deviationFactor = 3
	// maxPrediction bounds predictions, so that they remain numbers whatever was observed.
	maxPrediction = time.Hour
)

// Observe learns from a frame. Frames without points or time say nothing.
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

// Predict says what a frame of so many points will be, and whether anything is known of the codec
// with these parameters. Speeds that make no difference to the codec are known together.
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

// line is a straight line through what was seen lately: least squares with weights that fade
// (Haykin, Adaptive Filter Theory, 10.2), and with a slope that is expected until values far enough
// apart show another.
type line struct {
	// prior is the slope that is expected; where it is bounded, slopes below least count as least.
	prior, least float64
	bounded      bool

	weight, x, y, xx, xy float64
}

// priorWeight is how much the expected slope counts: as much as one frame in memoryFrames that is
// off the mean by the square root of this.
const priorWeight = 0.02

// smallestScale stands for where values are if all are 0, as the logarithm of a single point is:
// far below the square of one over the points of any frame.
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
	// The prior's weight is relative to where values are, since x is of any unit.
	prior := priorWeight * max(meanX*meanX, smallestScale)
	slope := (l.xy - l.x*meanY + prior*l.prior) / (spread + prior)
	if l.bounded {
		slope = max(slope, l.least)
	}
	return meanY + slope*(x-meanX)
}

// mean is one that fades, from a first value.
type mean struct{ value float64 }

// deviationGain is RFC 6298's for deviations.
const deviationGain = 1. / 4

func (m *mean) add(v float64) { m.value += deviationGain * (v - m.value) }
