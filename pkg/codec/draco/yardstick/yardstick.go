//go:build cgo && !portable

// Package yardstick calls Google's Draco from C++ as an application would. The package is the reference for the
// frames of package draco and for the time to encode and decode them. The functions share no state.
package yardstick

// #cgo CXXFLAGS: -O2 -std=c++17 -Wall -Wextra
// #cgo LDFLAGS: -l:libdraco.a -lstdc++ -lm
// #cgo noescape yardstick_encode
// #cgo nocallback yardstick_encode
// #cgo noescape yardstick_decode
// #cgo nocallback yardstick_decode
// #cgo noescape yardstick_time_encode
// #cgo nocallback yardstick_time_encode
// #cgo noescape yardstick_time_decode
// #cgo nocallback yardstick_time_decode
// #include <stdlib.h>
// #include "yardstick.h"
import "C"

import (
	"errors"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ErrDraco reports that Draco failed to encode or to decode.
var ErrDraco = errors.New("draco failed")

// paramsOf converts the parameters for C++. Draco rounds the box to six decimals.
func paramsOf(params codec.Params) C.yardstick_params {
	c := C.yardstick_params{
		_range: C.float(params.Range()),
		bits:   C.int(params.PositionBits),
		speed:  C.int(params.Speed),
		method: 1,
	}
	if params.Sequential {
		c.method = 0
	}
	for axis, v := range params.Box.Min {
		c.origin[axis] = C.float(v)
	}
	return c
}

func floats(positions [][3]float32) *C.float {
	return (*C.float)(unsafe.Pointer(unsafe.SliceData(positions)))
}

func bytesOf[T any](s []T) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(s))) }

// colorsOf returns the colours to be encoded, or nil if the parameters omit them.
func colorsOf(cloud *pointcloud.Cloud, params codec.Params) *C.uint8_t {
	if params.NoColors {
		return nil
	}
	return bytesOf(cloud.Colors)
}

// Encode encodes a cloud with points as an application of Draco would.
func Encode(cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	frame := C.yardstick_encode(
		floats(cloud.Positions),
		colorsOf(cloud, params),
		C.uint32_t(cloud.Len()),
		paramsOf(params),
	)
	if frame.data == nil {
		return nil, ErrDraco
	}
	defer C.free(unsafe.Pointer(frame.data))
	return C.GoBytes(unsafe.Pointer(frame.data), C.int(frame.size)), nil
}

// Decode decodes a frame with positions. Without colours the points are white. Decode is meant for
// frames that are known to be valid.
func Decode(frame []byte) (*pointcloud.Cloud, error) {
	out := C.yardstick_decode(bytesOf(frame), C.size_t(len(frame)))
	if out.ok == 0 {
		return nil, ErrDraco
	}
	defer C.free(unsafe.Pointer(out.positions))
	defer C.free(unsafe.Pointer(out.colors))
	cloud := &pointcloud.Cloud{
		Positions: make([][3]float32, int(out.points)),
		Colors:    make([][3]uint8, int(out.points)),
	}
	copy(cloud.Positions, unsafe.Slice((*[3]float32)(unsafe.Pointer(out.positions)), int(out.points)))
	if out.colors == nil {
		for i := range cloud.Colors {
			cloud.Colors[i] = codec.White
		}
	} else {
		copy(cloud.Colors, unsafe.Slice((*[3]uint8)(unsafe.Pointer(out.colors)), int(out.points)))
	}
	return cloud, nil
}

// TimeEncode returns the processor time per frame of Draco's encoder in a loop in C++.
func TimeEncode(cloud *pointcloud.Cloud, params codec.Params, rounds int) (time.Duration, error) {
	ns := C.yardstick_time_encode(
		floats(cloud.Positions),
		colorsOf(cloud, params),
		C.uint32_t(cloud.Len()),
		paramsOf(params),
		C.int(rounds),
	)
	if ns < 0 {
		return 0, ErrDraco
	}
	return time.Duration(ns), nil
}

// TimeDecode returns the processor time per frame of Draco's decoder in a loop in C++. The cloud
// must have as many points as the frame.
func TimeDecode(cloud *pointcloud.Cloud, frame []byte, params codec.Params, rounds int) (time.Duration, error) {
	ns := C.yardstick_time_decode(
		bytesOf(frame),
		C.size_t(len(frame)),
		floats(cloud.Positions),
		colorsOf(cloud, params),
		C.uint32_t(cloud.Len()),
		C.int(rounds),
	)
	if ns < 0 {
		return 0, ErrDraco
	}
	return time.Duration(ns), nil
}

// ThreadTime returns the processor time of the current thread. The caller must have locked its
// goroutine to the thread.
func ThreadTime() time.Duration { return time.Duration(C.yardstick_thread_time()) }
