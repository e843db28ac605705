// Package zstd is the codec "zstd" (FourCC "zstd"): quantised points in the order of a Morton
// curve, as differences from the point before, compressed by Zstandard. It needs no cgo.
//
// A frame is a codec.Head, and then one Zstandard frame. Of n points, it holds n bytes for each of
// these, one after the other:
//
//	the differences of places on the curve, from the one before and from 0 for the first: ceil(3·min(bits, 14) / 8) planes, least significant bytes first
//	what a grid of more than 14 bits has below the curve: ceil((bits - 14) / 8) planes for x, as many for y and for z
//	colours, unless there are none, as differences from the point before: of green, of red minus green, of blue minus green
//
// The curve is that of the highest 14 bits of each coordinate, or of all where there are fewer: bit
// 3i of a place is bit i of x, 3i+1 of y, 3i+2 of z.
package zstd

import (
	"github.com/klauspost/compress/zstd"

	"github.com/volsfu/volsfu/pkg/codec"
)

// maxPoints is the largest number of points in a frame: what indexBits can tell apart.
const maxPoints = 1 << indexBits

// Codec is the codec.
var Codec codec.Codec = zstds{}

func init() { codec.Register(Codec) }

type zstds struct{}

func (zstds) FourCC() codec.FourCC      { return codec.FourCC{'z', 's', 't', 'd'} }
func (zstds) Name() string              { return "zstd" }
func (zstds) NewEncoder() codec.Encoder { return newEncoder() }
func (zstds) NewDecoder() codec.Decoder { return &decoder{} }

func (zstds) Capabilities() codec.Capabilities {
	return codec.Capabilities{
		Encodes:     true,
		Colors:      true,
		ExactColors: true,
		Ordered:     true,
		Steps:       []int{0, 4, 7},
		MaxPoints:   maxPoints,
	}
}

// effort is how hard Zstandard tries at a speed, by the steps of Capabilities.
func effort(speed int) zstd.EncoderLevel {
	switch {
	case speed >= 7:
		return zstd.SpeedFastest
	case speed >= 4:
		return zstd.SpeedDefault
	default:
		return zstd.SpeedBetterCompression
	}
}

// layout says how many planes there are of what.
type layout struct {
	points      int
	curve       int // bits of a coordinate on the curve
	below       int // bits of a coordinate below it
	placePlanes int
	belowPlanes int // of each coordinate
	colorPlanes int
}

func layoutOf(points int, params codec.Params) layout {
	l := layout{
		points: points,
		curve:  min(params.PositionBits, curveBits),
		below:  max(0, params.PositionBits-curveBits),
	}
	l.placePlanes, l.belowPlanes = (3*l.curve+7)/8, (l.below+7)/8
	if !params.NoColors {
		l.colorPlanes = 3
	}
	return l
}

// bytes is the size of all planes.
func (l layout) bytes() int { return l.points * (l.placePlanes + 3*l.belowPlanes + l.colorPlanes) }
