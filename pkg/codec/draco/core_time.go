//go:build cgo

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

// Core is what is behind encoders and decoders, called in a loop in C++: the yardstick for calling
// it from Go. It keeps its memory as encoders do.
type Core struct{ encoder *encoder }

// NewCore makes one.
func NewCore() *Core { return &Core{newEncoder()} }

// TimeEncode encodes a cloud that has points so many times and returns the processor time that each took.
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

// TimeDecode is the same for decoding a frame into a cloud, which has as many points already.
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
