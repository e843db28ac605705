//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/pkg/codec"
	_ "github.com/volsfu/volsfu/pkg/codec/cwi1"
	_ "github.com/volsfu/volsfu/pkg/codec/labels"
	_ "github.com/volsfu/volsfu/pkg/codec/parts"
	_ "github.com/volsfu/volsfu/pkg/codec/zstd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// usualBits and usualSpeed replace a 0 in volsfu_encoding.
	usualBits, usualSpeed = 11, 10
	// maxPoints bounds the arrays of a program: 2^26 points, with 4 bytes of colour, have 1 GiB.
	maxPoints = 1 << 26
)

// coders holds the coders that no call uses, by codec. Coders keep memory for the next frame, and the garbage collector
// frees them if a program has ended to use them.
var coders sync.Map // volumetric.FourCC → *sync.Pool of *coder

// coder encodes and decodes frames of one codec, in one call at a time.
type coder struct {
	encoder codec.Encoder
	decoder codec.Decoder
	cloud   pointcloud.Cloud
	frame   []byte
	raster  codec.Raster
	rays    rays
}

// withCoder calls do with a coder of the codec. The error wraps codec.ErrUnknown if the library has no such codec. A
// coder whose call panics is not used again.
func withCoder(fourCC volumetric.FourCC, do func(*coder) error) error {
	c, err := codec.ByFourCC(fourCC)
	if err != nil {
		return err
	}
	entry, ok := coders.Load(fourCC)
	if !ok {
		entry, _ = coders.LoadOrStore(fourCC, &sync.Pool{New: func() any {
			return &coder{encoder: c.NewEncoder(), decoder: c.NewDecoder()}
		}})
	}
	pool := entry.(*sync.Pool)
	one := pool.Get().(*coder)
	err = do(one)
	pool.Put(one)
	return err
}

//export volsfu_get_codecs
func volsfu_get_codecs(buffer *C.char, capacity C.size_t, length *C.size_t) C.int32_t {
	return guarded(func() error {
		type description struct {
			Name      string `json:"name"`
			FourCC    string `json:"fourcc"`
			Encodes   bool   `json:"encodes"`
			MaxPoints int    `json:"max_points"`
		}
		var list struct {
			Codecs []description `json:"codecs"`
		}
		for _, name := range codec.Names() {
			c, err := codec.ByName(name)
			if err != nil {
				return err
			}
			able := c.Capabilities()
			list.Codecs = append(list.Codecs, description{name, c.FourCC().String(), able.Encodes, able.MaxPoints})
		}
		text, err := json.Marshal(list)
		if err != nil {
			return err
		}
		return writeText(text, buffer, capacity, length)
	})
}

//export volsfu_encode
func volsfu_encode(
	encoding *C.volsfu_encoding_in, points *C.volsfu_points_in, buffer *C.volsfu_buffer, capacity C.size_t,
	length *C.size_t,
) C.int32_t {
	return guarded(func() error {
		if err := sized("encoding", encoding, func(e *C.volsfu_encoding_in) C.uint32_t { return e.size }); err != nil {
			return err
		}
		if err := given("length", length); err != nil {
			return err
		}
		if buffer == nil && capacity > 0 {
			return fmt.Errorf("buffer of %d bytes: %w", uint64(capacity), errNull)
		}
		params, err := readEncoding(encoding)
		if err != nil {
			return err
		}
		from, err := pointsOf(points, func(p *C.volsfu_points_in) C.size_t { return p.count })
		if err != nil {
			return err
		}
		params.NoColors = len(from.colors) == 0
		return withCoder(*(*volumetric.FourCC)(unsafe.Pointer(&encoding.codec)), func(c *coder) error {
			from.read(&c.cloud)
			frame, err := c.encoder.Encode(c.frame[:0], &c.cloud, params)
			if err != nil {
				return err
			}
			c.frame = frame
			*length = C.size_t(len(frame))
			if uint64(capacity) < uint64(len(frame)) {
				return fmt.Errorf("%w: %d bytes, expected at least %d", errBuffer, uint64(capacity), len(frame))
			}
			copy(unsafe.Slice((*byte)(unsafe.Pointer(buffer)), len(frame)), frame)
			return nil
		})
	})
}

//export volsfu_decode
func volsfu_decode(name *C.volsfu_text, data *C.volsfu_bytes, length C.size_t, points *C.volsfu_points) C.int32_t {
	return guarded(func() error {
		if err := given("codec", name); err != nil {
			return err
		}
		frame, err := list("bytes", (*byte)(unsafe.Pointer(data)), uint64(length), math.MaxInt32)
		if err != nil {
			return err
		}
		to, err := pointsOf(
			(*C.volsfu_points_in)(points), func(p *C.volsfu_points_in) C.size_t { return p.capacity })
		if err != nil {
			return err
		}
		if len(frame) == 0 {
			points.count = 0
			return nil
		}
		return withCoder(*(*volumetric.FourCC)(unsafe.Pointer(name)), func(c *coder) error {
			if err := c.decoder.Decode(&c.cloud, frame); err != nil {
				return err
			}
			points.count = C.size_t(c.cloud.Len())
			if c.cloud.Len() > int(points.capacity) {
				return fmt.Errorf(
					"%w: room for %d points, expected at least %d", errBuffer, uint64(points.capacity), c.cloud.Len())
			}
			to.write(&c.cloud)
			return nil
		})
	})
}

// readEncoding returns the parameters of an encoding, except NoColors.
func readEncoding(e *C.volsfu_encoding_in) (codec.Params, error) {
	params := codec.Params{
		PositionBits: usualBits, Speed: usualSpeed, Box: box(e.box), ColorQuality: int(e.color_quality),
	}
	if e.position_bits != 0 {
		params.PositionBits = int(e.position_bits)
	}
	if e.speed != 0 {
		params.Speed = int(e.speed)
	}
	return params, params.Validate()
}

// points are arrays of a program: positions, and colours of colorBytes bytes each. colors is empty if the program has
// none.
type points struct {
	positions  [][3]float32
	colors     []byte
	colorBytes int
}

// pointsOf returns the arrays of a struct, with the number of points that count reads from the struct. The error wraps
// guest.ErrArgument, errNull or errSize.
func pointsOf(p *C.volsfu_points_in, count func(*C.volsfu_points_in) C.size_t) (points, error) {
	var read points
	if err := sized("points", p, func(p *C.volsfu_points_in) C.uint32_t { return p.size }); err != nil {
		return read, err
	}
	var err error
	if read.colorBytes, err = colorBytes(p.color_bytes); err != nil {
		return read, err
	}
	if read.positions, err = list(
		"positions", (*[3]float32)(unsafe.Pointer(p.positions)), uint64(count(p)), maxPoints); err != nil {
		return read, err
	}
	if p.colors != nil {
		read.colors = unsafe.Slice((*byte)(unsafe.Pointer(p.colors)), len(read.positions)*read.colorBytes)
	}
	return read, nil
}

// colorBytes returns the bytes of a colour. The error wraps guest.ErrArgument.
func colorBytes(given C.uint32_t) (int, error) {
	switch given {
	case 0:
		return 3, nil
	case 3, 4:
		return int(given), nil
	}
	return 0, fmt.Errorf("%w: colours of %d bytes, expected 3 or 4", guest.ErrArgument, uint32(given))
}

// read replaces the points of a cloud by these points.
func (p *points) read(cloud *pointcloud.Cloud) {
	cloud.Reset()
	cloud.Positions = append(cloud.Positions, p.positions...)
	for i := 0; i < len(p.colors); i += p.colorBytes {
		cloud.Colors = append(cloud.Colors, [3]uint8(p.colors[i:]))
	}
}

// write stores the points of a cloud, which has no more points than the arrays.
func (p *points) write(cloud *pointcloud.Cloud) {
	copy(p.positions, cloud.Positions)
	p.writeColors(cloud.Colors)
}

// writeColors stores colours, no more than the array has room for.
func (p *points) writeColors(from [][3]uint8) {
	switch {
	case len(p.colors) == 0 || len(from) == 0:
	case p.colorBytes == 3:
		copy(unsafe.Slice((*[3]uint8)(unsafe.Pointer(&p.colors[0])), len(from)), from)
	default:
		for i, color := range from {
			*(*[4]uint8)(p.colors[4*i:]) = [4]uint8{color[0], color[1], color[2], 255}
		}
	}
}
