//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/handle"
	"github.com/volsfu/volsfu/internal/peer/codecs" // registers the codecs
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// decoding is a decoder of the program: one for each codec whose frames it was given.
type decoding struct {
	mu       sync.Mutex
	decoders map[codec.FourCC]codec.Decoder
	cloud    pointcloud.Cloud
}

//export volsfu_open_decoder
func volsfu_open_decoder(out *C.volsfu_decoder) C.int32_t {
	return guarded(func() error {
		if err := given("decoder", out); err != nil {
			return err
		}
		*out = C.volsfu_decoder(decoders.Add(&decoding{decoders: make(map[codec.FourCC]codec.Decoder)}))
		return nil
	})
}

//export volsfu_close_decoder
func volsfu_close_decoder(h C.volsfu_decoder) C.int32_t {
	return guarded(func() error {
		_, err := decoders.Remove(handle.Handle(h))
		return err
	})
}

//export volsfu_decode_points
func volsfu_decode_points(h C.volsfu_decoder, points *C.volsfu_points) C.int32_t {
	return guarded(func() error {
		d, err := decoders.Get(handle.Handle(h))
		if err != nil {
			return err
		}
		if err := sized("points", points, func(p *C.volsfu_points) C.uint32_t { return p.size }); err != nil {
			return err
		}
		data, err := list("bytes of a frame", (*byte)(points.data), uint64(points.length), math.MaxInt32)
		if err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		fourCC := codec.FourCC{byte(points.codec[0]), byte(points.codec[1]), byte(points.codec[2]), byte(points.codec[3])}
		points.count = 0
		if err := d.decode(fourCC, data); err != nil {
			return err
		}
		return d.handOut(points)
	})
}

// decode decodes a frame to the decoder's cloud. No data is a tile without points, whatever its codec.
func (d *decoding) decode(fourCC codec.FourCC, data []byte) error {
	d.cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	decoder := d.decoders[fourCC]
	if decoder == nil {
		c, err := codec.ByFourCC(fourCC)
		if err != nil {
			return codecs.Explain(fourCC, err)
		}
		decoder = c.NewDecoder()
		d.decoders[fourCC] = decoder
	}
	return codecs.Explain(fourCC, decoder.Decode(&d.cloud, data))
}

// handOut copies the decoder's cloud to the memory of the program.
func (d *decoding) handOut(points *C.volsfu_points) error {
	count := d.cloud.Len()
	points.count = C.size_t(count)
	switch {
	case count == 0:
		return nil
	case uint64(points.capacity) < uint64(count):
		return fmt.Errorf("points: %w: capacity is %d, expected at least %d", errBuffer, uint64(points.capacity), count)
	case points.positions == nil:
		points.count = 0
		return given("positions", points.positions)
	}
	copy(unsafe.Slice((*[3]float32)(unsafe.Pointer(points.positions)), count), d.cloud.Positions)
	if points.colors != nil {
		copy(unsafe.Slice((*[3]uint8)(unsafe.Pointer(points.colors)), count), d.cloud.Colors)
	}
	return nil
}
