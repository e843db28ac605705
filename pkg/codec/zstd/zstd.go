// Package zstd implements the codec "zstd" (FourCC "zstd"): quantized points in the order of a
// Morton curve, as differences from the previous point, compressed by Zstandard. The package needs
// no cgo.
//
// A frame is a codec.Head followed by one Zstandard frame. For n points the Zstandard frame
// contains planes of n bytes each, in this order:
//
//	differences of the position on the curve, for the first point from 0: ceil(3·min(bits, 14) / 8) planes,
//	    least significant bytes first
//	bits below the curve of grids with more than 14 bits: ceil((bits - 14) / 8) planes for x, then y, then z
//	colours, unless omitted, as differences from the previous point: green, red minus green, blue minus green
//
// The curve consists of the highest 14 bits of each coordinate, or of all bits if there are fewer:
// bit 3i of a position on the curve is bit i of x, bit 3i+1 of y, bit 3i+2 of z.
package zstd

import (
	"github.com/klauspost/compress/zstd"

	"github.com/volsfu/volsfu/pkg/codec"
)

// maxPoints is the maximum number of points in a frame: the range of indexBits.
const maxPoints = 1 << indexBits

// Codec is the codec "zstd".
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

// effort returns the Zstandard level for a speed, by the steps of Capabilities.
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

// layout contains the numbers of planes.
type layout struct {
	points      int
	curve       int // bits of a coordinate on the curve
	below       int // bits of a coordinate below the curve
	placePlanes int
	belowPlanes int // per coordinate
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

// bytes returns the size of all planes in bytes.
func (l layout) bytes() int { return l.points * (l.placePlanes + 3*l.belowPlanes + l.colorPlanes) }
