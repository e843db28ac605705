//go:build cgo && !portable

package dracojpeg

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco" // registers the codec of the geometry
	"github.com/volsfu/volsfu/pkg/codec/jpeg"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Available reports whether this program encodes with the codec.
func Available() bool { return true }

func init() { codec.Register(dracojpeg{}) }

type dracojpeg struct{}

func (dracojpeg) FourCC() codec.FourCC { return codec.FourCC{'d', 'r', 'c', 'j'} }
func (dracojpeg) Name() string         { return "draco+jpeg" }
func (dracojpeg) NewEncoder() codec.Encoder {
	return &encoder{geometry: geometry.NewEncoder().(codec.OrderedEncoder)}
}
func (dracojpeg) NewDecoder() codec.Decoder {
	return newDecoder(new(jpeg.Decoder))
}

// Capabilities returns the capabilities of the geometry's codec, with colours that are not exact.
func (dracojpeg) Capabilities() codec.Capabilities {
	c := geometry.Capabilities()
	c.ExactColors = false
	return c
}

type encoder struct {
	geometry codec.OrderedEncoder
	jpeg     jpeg.Encoder
	order    []uint32
	image    []byte
}

// Encode appends the cloud's frame to dst.
func (e *encoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	frame, err := e.encode(dst, cloud, params)
	if err != nil {
		return dst, fmt.Errorf("encode draco+jpeg: %w", err)
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
	frame, err := e.Encode(dst, cloud, params)
	if err != nil {
		return dst, order[:0], err
	}
	return frame, append(order[:0], e.order...), nil
}

func (e *encoder) encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	e.order = e.order[:0]
	if err := params.Check(cloud, draco.MaxPoints); err != nil {
		return dst, err
	}
	if cloud.Len() == 0 {
		return dst, nil
	}
	quality := params.ColorQuality
	switch {
	case params.NoColors:
		quality = 0
	case quality == 0:
		quality = codec.DefaultColorQuality
	}
	begin := len(dst)
	frame := append(dst, make([]byte, headerBytes)...)
	plain := params
	plain.NoColors = true
	var err error
	if frame, e.order, err = e.geometry.EncodeOrdered(frame, e.order, cloud, plain); err != nil {
		return dst, err
	}
	size := len(frame) - begin - headerBytes
	if size > math.MaxUint32 {
		return dst, fmt.Errorf(
			"%w: the geometry has %d bytes, expected at most %d",
			codec.ErrParams,
			size,
			uint32(math.MaxUint32),
		)
	}
	binary.LittleEndian.PutUint32(frame[begin:], uint32(size))
	frame[begin+4] = uint8(quality)
	if quality == 0 {
		return frame, nil
	}
	return e.appendImage(frame, cloud, quality)
}

// appendImage appends the colours.
func (e *encoder) appendImage(frame []byte, cloud *pointcloud.Cloud, quality int) ([]byte, error) {
	l := layoutOf(cloud.Len())
	e.image = l.paint(e.image, cloud.Colors, e.order)
	return e.jpeg.Append(frame, e.image, jpeg.Image{Width: l.width, Height: l.height, Quality: quality})
}
