package individual

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/model"
)

const (
	// usualBits are bits per point before anything was seen: Draco's of a person at 11 bits per coordinate.
	usualBits = 28
	// correctionGain is how far one frame moves the correction: the last two count most, as the person moves on.
	correctionGain = 0.5
)

// learnt is what is known of one codec with one set of parameters. The model remembers seconds, so that it knows what
// points come to at any number of them; the correction is by how much more or less the latest frames came to than it
// says.
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

// bytes is what so many points come to.
func (l *learnt) bytes(points int) int {
	p, known := l.model.Predict(l.codec, l.params, points)
	if !known {
		return points * usualBits / 8
	}
	return int(min(math.Ceil(float64(p.Bytes)*l.correction), math.MaxInt32))
}

// most is the largest number from 1 to limit for which something that grows with it holds, 1 where it never does.
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
