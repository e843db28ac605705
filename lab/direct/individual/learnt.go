package individual

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/model"
)

const (
	// usualBits is the number of bits per point before the first observation: that of Draco for a person at 11 bits per
	// coordinate.
	usualBits = 28
	// correctionGain is the weight of one frame in the correction. The last two frames count most, because the person
	// moves.
	correctionGain = 0.5
)

// learnt predicts the size of one codec with one set of parameters. The model has observations of several seconds and
// covers all numbers of points. The correction is the ratio of the actual size of the latest frames to the prediction.
type learnt struct {
	model      *model.Model
	codec      codec.Codec
	params     codec.Params
	correction float64
}

func (l *learnt) observe(points, bytes int, took time.Duration) {
	if p, known := l.model.Predict(l.codec, l.params, points); known && p.Bytes > 0 {
		l.correction += correctionGain * (float64(bytes)/float64(p.Bytes) - l.correction)
	}
	l.model.Observe(model.Observation{Codec: l.codec, Params: l.params, Points: points, Bytes: bytes, Took: took})
}

// bytes returns the predicted size of a number of points.
func (l *learnt) bytes(points int) int {
	p, known := l.model.Predict(l.codec, l.params, points)
	if !known {
		return points * usualBits / 8
	}
	return int(min(math.Ceil(float64(p.Bytes)*l.correction), math.MaxInt32))
}

// most returns the largest number from 1 to limit for which holds returns true. holds must be monotonic. If it never
// returns true, most returns 1.
func most(limit int, holds func(points int) bool) int {
	low, high := 1, limit
	for low < high {
		middle := low + (high-low+1)/2
		if holds(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}
