//go:build cgo && !portable

package yardstick

// #cgo noescape yardstick_encode_mesh
// #cgo nocallback yardstick_encode_mesh
// #include <stdlib.h>
// #include "yardstick.h"
import "C"

import (
	"unsafe"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// EncodeMesh encodes a triangle mesh as an application of Draco would. The faces contain indices of
// the vertices. EncodeMesh uses the parameters PositionBits, Speed, Sequential (which keeps the
// order of vertices) and NoColors; positions are quantized in the mesh's own box.
func EncodeMesh(vertices *pointcloud.Cloud, faces [][3]uint32, params codec.Params) ([]byte, error) {
	frame := C.yardstick_encode_mesh(floats(vertices.Positions), colorsOf(vertices, params), C.uint32_t(vertices.Len()),
		(*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(faces))), C.uint32_t(len(faces)), paramsOf(params))
	if frame.data == nil {
		return nil, ErrDraco
	}
	defer C.free(unsafe.Pointer(frame.data))
	return C.GoBytes(unsafe.Pointer(frame.data), C.int(frame.size)), nil
}
