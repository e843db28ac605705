package zstd

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// encoder keeps its working memory, about 30 bytes per point, and a compressor for each level used.
type encoder struct {
	places      []uint64 // position on the curve, above the point's index
	sorter      sorter
	planes      []byte
	compressors map[zstd.EncoderLevel]*zstd.Encoder
}

func newEncoder() *encoder { return &encoder{compressors: make(map[zstd.EncoderLevel]*zstd.Encoder)} }

// Encode appends the cloud's frame to dst.
func (e *encoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	if err := params.Check(cloud, maxPoints); err != nil {
		return dst, fmt.Errorf("encode zstd: %w", err)
	}
	if cloud.Len() == 0 {
		e.places = e.places[:0]
		return dst, nil
	}
	compressor, err := e.compressor(effort(params.Speed))
	if err != nil {
		return dst, fmt.Errorf("encode zstd: %w", err)
	}
	l := layoutOf(cloud.Len(), params)
	e.order(cloud, params.Grid(), l)
	e.planes = slices.Grow(e.planes[:0], l.bytes())[:l.bytes()]
	rest := e.writePlaces(e.planes, l)
	if l.below > 0 {
		rest = e.writeBelow(rest, cloud, params.Grid(), l)
	}
	if l.colorPlanes > 0 {
		e.writeColors(rest, cloud, l)
	}
	before := len(dst)
	frame := codec.Head{Points: uint32(l.points), Params: params}.AppendTo(dst)
	frame = compressor.EncodeAll(e.planes, frame)
	if most := codec.MostPoints(len(frame)-before, maxPoints); l.points > most {
		return dst, fmt.Errorf(
			"encode zstd: %w: %d points in %d bytes, expected at most %d, because they coincide",
			codec.ErrParams,
			l.points,
			len(frame)-before,
			most,
		)
	}
	return frame, nil
}

// EncodeOrdered appends the cloud's frame to dst and replaces order by the order of its points.
func (e *encoder) EncodeOrdered(
	dst []byte,
	order []uint32,
	cloud *pointcloud.Cloud,
	params codec.Params,
) ([]byte, []uint32, error) {
	dst, err := e.Encode(dst, cloud, params)
	if err != nil {
		return dst, order[:0], err
	}
	order = order[:0]
	for _, p := range e.places {
		order = append(order, index(p))
	}
	return dst, order, nil
}

// index returns the index of a point from its entry in places.
func index(placed uint64) uint32 { return uint32(placed) & (1<<indexBits - 1) }

// compressor returns the compressor of a level.
func (e *encoder) compressor(level zstd.EncoderLevel) (*zstd.Encoder, error) {
	if c := e.compressors[level]; c != nil {
		return c, nil
	}
	c, err := zstd.NewWriter(
		nil,
		zstd.WithEncoderLevel(level),
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true),
	)
	if err != nil {
		return nil, err
	}
	e.compressors[level] = c
	return c, nil
}

// order sorts the points along the curve.
func (e *encoder) order(cloud *pointcloud.Cloud, grid codec.Grid, l layout) {
	e.places = slices.Grow(e.places[:0], l.points)[:l.points]
	for i, p := range cloud.Positions {
		q := grid.Steps(p)
		e.places[i] = mortonCode(q[0]>>l.below, q[1]>>l.below, q[2]>>l.below)<<indexBits | uint64(i)
	}
	e.places = e.sorter.sort(e.places, indexBits, indexBits+3*l.curve)
}

// writePlaces fills the planes of curve positions and returns the remaining planes.
func (e *encoder) writePlaces(planes []byte, l layout) []byte {
	n := l.points
	before := uint64(0)
	for i, p := range e.places {
		here := p >> indexBits
		difference := here - before
		before = here
		for at := i; at < l.placePlanes*n; at += n {
			planes[at] = uint8(difference)
			difference >>= 8
		}
	}
	return planes[l.placePlanes*n:]
}

// writeBelow fills the planes of the bits below the curve and returns the remaining planes.
func (e *encoder) writeBelow(planes []byte, cloud *pointcloud.Cloud, grid codec.Grid, l layout) []byte {
	n := l.points
	for i, p := range e.places {
		for axis, q := range grid.Steps(cloud.Positions[index(p)]) {
			q &= 1<<l.below - 1
			for plane := range l.belowPlanes {
				planes[(axis*l.belowPlanes+plane)*n+i] = uint8(q >> (8 * plane))
			}
		}
	}
	return planes[3*l.belowPlanes*n:]
}

// writeColors fills the planes of colours.
func (e *encoder) writeColors(planes []byte, cloud *pointcloud.Cloud, l layout) {
	n := l.points
	greens, reds, blues := planes[:n], planes[n:2*n], planes[2*n:3*n]
	var before [3]uint8
	for i, p := range e.places {
		color := cloud.Colors[index(p)]
		red, green, blue := color[0]-before[0], color[1]-before[1], color[2]-before[2]
		before = color
		greens[i], reds[i], blues[i] = green, red-green, blue-green
	}
}
