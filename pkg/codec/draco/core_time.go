//go:build cgo && !portable

package draco

// #cgo noescape volsfu_time_encode
// #cgo nocallback volsfu_time_encode
// #cgo noescape volsfu_time_decode
// #cgo nocallback volsfu_time_decode
// #include "inside.h"
import "C"

import (
	"fmt"
	"runtime"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Core calls the C++ functions of encoders and decoders in a loop in C++. The times are the reference for calls from
// Go. A Core keeps its memory as encoders do.
type Core struct{ encoder *encoder }

// NewCore returns a Core.
func NewCore() *Core { return &Core{newEncoder()} }

// TimeEncode encodes a cloud with points the given number of times and returns the processor time
// per frame.
func (c *Core) TimeEncode(cloud *pointcloud.Cloud, params codec.Params, rounds int) (time.Duration, error) {
	if err := params.Check(cloud, MaxPoints); err != nil {
		return 0, err
	}
	if c.encoder.c == nil {
		return 0, errNoMemory
	}
	h, _ := headerOf(cloud.Len(), params)
	ns := C.volsfu_time_encode(
		c.encoder.c,
		floats(cloud.Positions),
		colorsOf(cloud, params),
		C.uint32_t(cloud.Len()),
		gridOf(params),
		C.int(h.level),
		truth(h.sequential),
		C.int(rounds),
	)
	runtime.KeepAlive(c)
	if ns < 0 {
		return 0, errNoMemory
	}
	return time.Duration(ns), nil
}

// TimeDecode decodes a frame the given number of times to a cloud that has the same number of
// points already, and returns the processor time per frame.
func (*Core) TimeDecode(cloud *pointcloud.Cloud, frame []byte, rounds int) (time.Duration, error) {
	h, inside, t, err := parse(frame)
	if err != nil {
		return 0, err
	}
	if n := cloud.Len(); n != int(h.points) || n != len(cloud.Colors) {
		return 0, fmt.Errorf(
			"%w: cloud has %d positions and %d colours, the frame %d points",
			codec.ErrParams,
			n,
			len(cloud.Colors),
			h.points,
		)
	}
	ns := C.volsfu_time_decode(
		bytesOf(inside),
		C.size_t(len(inside)),
		C.int(h.level),
		t.grid(),
		C.uint32_t(h.points),
		truth(h.colored),
		truth(h.sequential),
		floats(cloud.Positions),
		bytesOf(cloud.Colors),
		C.int(rounds),
	)
	if ns < 0 {
		return 0, codec.ErrMalformed
	}
	return time.Duration(ns), nil
}
