//go:build cgo

package draco

// #cgo CXXFLAGS: -O2 -std=c++17 -Wall -Wextra
// #cgo LDFLAGS: -Wl,--wrap=_ZN5draco13DecodeSymbolsEjiPNS_13DecoderBufferEPj -l:libdraco.a -lstdc++ -lm
// #cgo noescape volsfu_encode
// #cgo nocallback volsfu_encode
// #cgo noescape volsfu_encode_sequence
// #cgo nocallback volsfu_encode_sequence
// #cgo noescape volsfu_decode
// #cgo nocallback volsfu_decode
// #cgo noescape volsfu_decode_sequence
// #cgo nocallback volsfu_decode_sequence
// #include "inside.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Available reports whether this program was built with Draco's library, which encodes point clouds and decodes meshes.
func Available() bool { return true }

func init() { codec.Register(draco{}) }

// errNoMemory reports that C++ could not allocate memory.
var errNoMemory = errors.New("draco: out of memory")

type draco struct{}

func (draco) FourCC() codec.FourCC      { return codec.FourCC{'d', 'r', 'c', 'o'} }
func (draco) Name() string              { return "draco" }
func (draco) NewEncoder() codec.Encoder { return newEncoder() }
func (draco) NewDecoder() codec.Decoder { return decoder{} }

// Capabilities implements codec.Codec. Numbers in the nodes of the tree are coded in four ways, and
// symbol tables of sequential frames in five.
func (draco) Capabilities() codec.Capabilities {
	return codec.Capabilities{
		Encodes: true, Colors: true, ExactColors: true, Ordered: true, MaxPoints: MaxPoints,
		Steps: []int{0, 5, 7, 9}, SequentialSteps: []int{0, 1, 3, 5, 7},
	}
}

// encoder owns the working memory in C++. The memory is freed after the encoder is collected.
type encoder struct {
	c *C.volsfu_encoder
}

func newEncoder() *encoder {
	e := &encoder{c: C.volsfu_encoder_new()}
	if e.c != nil {
		runtime.AddCleanup(e, func(c *C.volsfu_encoder) { C.volsfu_encoder_free(c) }, e.c)
	}
	return e
}

// Encode appends the cloud's frame to dst. The error wraps codec.ErrParams if parameters are out of
// range, if the cloud has more than MaxPoints points, or if more than 65,536 points almost
// coincide, because decoders reject such frames.
func (e *encoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	return e.encode(dst, nil, cloud, params)
}

// EncodeOrdered appends the cloud's frame to dst and replaces order by the order of its points.
func (e *encoder) EncodeOrdered(
	dst []byte,
	order []uint32,
	cloud *pointcloud.Cloud,
	params codec.Params,
) ([]byte, []uint32, error) {
	n := cloud.Len()
	order = slices.Grow(order[:0], n)[:n]
	dst, err := e.encode(dst, order, cloud, params)
	switch {
	case err != nil:
		return dst, order[:0], err
	case params.Sequential:
		return dst, codec.AppendIdentity(order[:0], n), nil
	}
	return dst, order, nil
}

// encode fills order, which has one entry per point, if order is not empty and the frame is a tree.
func (e *encoder) encode(dst []byte, order []uint32, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	if err := params.Check(cloud, MaxPoints); err != nil {
		return dst, fmt.Errorf("encode draco: %w", err)
	}
	n := cloud.Len()
	switch {
	case n == 0:
		return dst, nil
	case e.c == nil:
		return dst, errNoMemory
	}
	h, t := headerOf(n, params)
	grid, colors := gridOf(params), colorsOf(cloud, params)
	var out C.volsfu_encoded
	if h.sequential {
		out = C.volsfu_encode_sequence(e.c, floats(cloud.Positions), colors, C.uint32_t(n), grid, C.int(h.level))
	} else {
		out = C.volsfu_encode(
			e.c,
			floats(cloud.Positions),
			colors,
			C.uint32_t(n),
			grid,
			C.int(h.level),
			(*C.uint32_t)(unsafe.SliceData(order)),
		)
	}
	if out.status != C.VOLSFU_OK {
		return dst, errNoMemory
	}
	if least := leastHeaderBytes + int(out.size) + trailerBytes; n > codec.MostPoints(least, MaxPoints) {
		return dst, fmt.Errorf(
			"encode draco: %w: %d points in %d bytes, expected at most %d, because they coincide",
			codec.ErrParams,
			n,
			least,
			codec.MostPoints(least, MaxPoints),
		)
	}
	dst = slices.Grow(dst, leastHeaderBytes+attributeBytes+1+int(out.size)+trailerBytes)
	dst = h.appendTo(dst)
	dst = append(dst, unsafe.Slice((*byte)(out.data), int(out.size))...)
	runtime.KeepAlive(e)
	return t.appendTo(dst), nil
}

// headerOf returns the header and the trailer of a frame with the given number of points.
func headerOf(points int, params codec.Params) (header, trailer) {
	h := header{
		points:     uint32(points),
		sequential: params.Sequential,
		colored:    !params.NoColors,
		level:      10 - params.Speed,
	}
	if !h.sequential {
		h.level = min(h.level, maxLevel)
	}
	return h, trailer{min: params.Box.Min, scale: params.Range(), bits: params.PositionBits}
}

func gridOf(params codec.Params) C.volsfu_grid {
	grid := trailer{min: params.Box.Min, scale: params.Range(), bits: params.PositionBits}.grid()
	for axis, v := range params.Box.Max {
		grid.max[axis] = C.float(v)
	}
	return grid
}

// grid returns the quantization needed for decoding.
func (t trailer) grid() C.volsfu_grid {
	grid := C.volsfu_grid{_range: C.float(t.scale), bits: C.int(t.bits)}
	for axis, v := range t.min {
		grid.min[axis] = C.float(v)
	}
	return grid
}

// colorsOf returns the colours to be encoded, or nil if the parameters omit them.
func colorsOf(cloud *pointcloud.Cloud, params codec.Params) *C.uint8_t {
	if params.NoColors {
		return nil
	}
	return bytesOf(cloud.Colors)
}

func floats(positions [][3]float32) *C.float {
	return (*C.float)(unsafe.Pointer(unsafe.SliceData(positions)))
}

func bytesOf[T any](s []T) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(s))) }

func truth(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// decoder has no state: it decodes directly into the cloud.
type decoder struct{}

// Decode replaces the cloud's points by the frame's.
func (decoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := decode(cloud, data); err != nil {
		cloud.Reset()
		return fmt.Errorf("decode draco: %w", err)
	}
	return nil
}

// Announced implements codec.Announcer.
func (decoder) Announced(data []byte) (int, error) { return announced(data) }

func decode(cloud *pointcloud.Cloud, data []byte) error {
	h, inside, t, err := parse(data)
	if err != nil {
		return err
	}
	n := int(h.points)
	cloud.Positions = slices.Grow(cloud.Positions, n)[:n]
	cloud.Colors = slices.Grow(cloud.Colors, n)[:n]
	from, size, positions, colors := bytesOf(
		inside,
	), C.size_t(
		len(inside),
	), floats(
		cloud.Positions,
	), bytesOf(
		cloud.Colors,
	)
	var out C.volsfu_decoded
	if h.sequential {
		out = C.volsfu_decode_sequence(from, size, t.grid(), C.uint32_t(n), truth(h.colored), positions, colors)
	} else {
		out = C.volsfu_decode(from, size, C.int(h.level), t.grid(), C.uint32_t(n), truth(h.colored), positions, colors)
	}
	switch {
	case out.status == C.VOLSFU_NO_MEMORY:
		return errNoMemory
	case out.status != C.VOLSFU_OK:
		return inconsistent(n, len(inside))
	case int(out.consumed) != len(inside):
		return trailing(len(inside) - int(out.consumed))
	}
	return nil
}
