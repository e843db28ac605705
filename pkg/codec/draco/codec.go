//go:build cgo

package draco

// #cgo CXXFLAGS: -O2 -std=c++17 -Wall -Wextra
// #cgo LDFLAGS: -l:libdraco.a -lstdc++ -lm
// #cgo noescape volsfu_encode
// #cgo nocallback volsfu_encode
// #cgo noescape volsfu_decode
// #cgo nocallback volsfu_decode
// #include "tree.h"
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

// Available tells whether this program was built with Draco.
func Available() bool { return true }

func init() { codec.Register(draco{}) }

// errNoMemory says that C++ could not allocate.
var errNoMemory = errors.New("draco: out of memory")

type draco struct{}

func (draco) FourCC() codec.FourCC      { return codec.FourCC{'d', 'r', 'c', 'o'} }
func (draco) Name() string              { return "draco" }
func (draco) NewEncoder() codec.Encoder { return newEncoder() }
func (draco) NewDecoder() codec.Decoder { return decoder{} }

// encoder holds the working memory of C++, which is freed after the encoder itself.
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

// Encode appends the cloud's frame to dst. Parameters out of range, and clouds of more than MaxPoints, give an error around codec.ErrParams.
func (e *encoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	if err := params.Validate(); err != nil {
		return dst, fmt.Errorf("encode draco: %w", err)
	}
	n := cloud.Len()
	switch {
	case n != len(cloud.Colors):
		return dst, fmt.Errorf("encode draco: %w: cloud has %d positions and %d colours, expected as many of both", codec.ErrParams, n, len(cloud.Colors))
	case n > MaxPoints:
		return dst, fmt.Errorf("encode draco: %w: cloud has %d points, expected at most %d", codec.ErrParams, n, MaxPoints)
	case n == 0:
		return dst, nil
	case e.c == nil:
		return dst, errNoMemory
	}
	h := header{points: uint32(n), level: min(10-params.Speed, maxLevel)}
	t := trailer{min: params.Box.Min, scale: params.Range(), bits: params.PositionBits}
	grid := t.grid()
	for axis, v := range params.Box.Max {
		grid.max[axis] = C.float(v)
	}
	out := C.volsfu_encode(e.c, floats(cloud.Positions), bytesOf(cloud.Colors), C.uint32_t(n), grid, C.int(h.level))
	if out.status != C.VOLSFU_OK {
		return dst, errNoMemory
	}
	dst = slices.Grow(dst, headerBytes+int(out.size)+trailerBytes)
	dst = h.appendTo(dst)
	dst = append(dst, unsafe.Slice((*byte)(out.data), int(out.size))...)
	runtime.KeepAlive(e)
	return t.appendTo(dst), nil
}

// grid is the quantisation for C++.
func (t trailer) grid() C.volsfu_grid {
	grid := C.volsfu_grid{_range: C.float(t.scale), bits: C.int(t.bits)}
	for axis, v := range t.min {
		grid.min[axis] = C.float(v)
	}
	return grid
}

func floats(positions [][3]float32) *C.float {
	return (*C.float)(unsafe.Pointer(unsafe.SliceData(positions)))
}

func bytesOf[T any](s []T) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(s))) }

// decoder has no state: it decodes straight into the cloud.
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

func decode(cloud *pointcloud.Cloud, data []byte) error {
	h, tree, t, err := parse(data)
	if err != nil {
		return err
	}
	n := int(h.points)
	cloud.Positions = slices.Grow(cloud.Positions, n)[:n]
	cloud.Colors = slices.Grow(cloud.Colors, n)[:n]
	out := C.volsfu_decode(bytesOf(tree), C.size_t(len(tree)), C.int(h.level), t.grid(), C.uint32_t(n), floats(cloud.Positions), bytesOf(cloud.Colors))
	switch {
	case out.status == C.VOLSFU_NO_MEMORY:
		return errNoMemory
	case out.status != C.VOLSFU_OK:
		return fmt.Errorf("%w: the tree of %d points in %d bytes contradicts itself", codec.ErrMalformed, n, len(tree))
	case int(out.consumed) != len(tree):
		return fmt.Errorf("%w: %d bytes between tree and quantisation, expected none", codec.ErrMalformed, len(tree)-int(out.consumed))
	}
	return nil
}
