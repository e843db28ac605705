//go:build cgo

// Package reference is Google's Draco as it is, through ExpertEncoder and Decoder. The tests and benchmarks of package draco hold that package's
// frames, decoding and speed against it; programs do not use it.
package reference

// #cgo CXXFLAGS: -O2 -std=c++17 -Wall -Wextra
// #cgo LDFLAGS: -l:libdraco.a -lstdc++ -lm
// #include <stdlib.h>
// #include "reference.h"
import "C"

import (
	"errors"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ErrDraco says that Draco refused to encode or to decode.
var ErrDraco = errors.New("draco failed")

// Method is one of Draco's two ways to code points.
type Method int

// The methods, with Draco's numbers.
const (
	Sequential Method = 0
	KdTree     Method = 1
)

// Encode makes a frame from a cloud that has points, as an application of Draco would.
func Encode(cloud *pointcloud.Cloud, params codec.Params, method Method) ([]byte, error) {
	origin := params.Box.Min
	frame := C.reference_encode((*C.float)(unsafe.Pointer(unsafe.SliceData(cloud.Positions))), (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(cloud.Colors))),
		C.uint32_t(cloud.Len()), (*C.float)(unsafe.Pointer(&origin)), C.float(params.Range()), C.int(params.PositionBits), C.int(params.Speed), C.int(method))
	if frame.data == nil {
		return nil, ErrDraco
	}
	defer C.free(unsafe.Pointer(frame.data))
	return C.GoBytes(unsafe.Pointer(frame.data), C.int(frame.size)), nil
}

// Decode makes a cloud from a frame with positions and colours. It is for frames that are known to be sound.
func Decode(frame []byte) (*pointcloud.Cloud, error) {
	out := C.reference_decode((*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(frame))), C.size_t(len(frame)))
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
	copy(cloud.Colors, unsafe.Slice((*[3]uint8)(unsafe.Pointer(out.colors)), int(out.points)))
	return cloud, nil
}
