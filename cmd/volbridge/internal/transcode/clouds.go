package transcode

import (
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const (
	// gridStep is the distance of quantised positions in metres. VR2Gather's cameras have a resolution of 2 mm at best.
	// A power of two avoids rounding, so that boxes of all sizes share one grid.
	gridStep = 1.0 / 1024
	// minBits and maxBits are the bits per coordinate of the smallest and the largest box. The smallest has edges of
	// 8 m around the origin, at which VR2Gather places the captured person.
	minBits, maxBits = 13, 24
	// fastest is the highest speed of encoders, for live frames.
	fastest = 10
	// exactBits is sufficient for positions from another codec's grid, which hardly has more bits, and for float32.
	exactBits = 24
)

// grid returns the quantisation of a cloud: steps of about a millimetre in a box around the origin. The box depends
// only on the extent of the cloud, so that tiles, qualities and frames are aligned. Points farther than 8 km from the
// origin are clamped to the box.
func grid(bounds volumetric.BoundingBox) codec.Params {
	params := codec.Params{Speed: fastest}
	for bits := minBits; bits <= maxBits; bits++ {
		params.PositionBits = bits
		low := -gridStep * float32(int(1)<<(bits-1))
		high := low + gridStep*float32(int(1)<<bits-1)
		fits := true
		for axis := range 3 {
			params.Box.Min[axis], params.Box.Max[axis] = low, high
			fits = fits && bounds.Min[axis] >= low && bounds.Max[axis] <= high
		}
		if fits {
			break
		}
	}
	return params
}

// lossless returns the quantisation of a cloud without loss.
func lossless(bounds volumetric.BoundingBox) codec.Params {
	params := codec.Params{PositionBits: exactBits, Speed: fastest, Box: bounds}
	// A cloud of a single position has no extent. The codec requires a box with positive edges.
	if params.Range() <= 0 {
		for axis, v := range bounds.Max {
			params.Box.Max[axis] = max(v+gridStep, math.Nextafter32(v, math.MaxFloat32))
		}
	}
	return params
}

// decoders has a decoder for each codec whose frames were decoded.
type decoders map[codec.FourCC]codec.Decoder

// of returns the decoder of a codec. The error wraps codec.ErrUnknown.
func (d decoders) of(fourCC codec.FourCC) (codec.Decoder, error) {
	if decoder := d[fourCC]; decoder != nil {
		return decoder, nil
	}
	c, err := codec.ByFourCC(fourCC)
	if err != nil {
		return nil, fmt.Errorf("transcode: %w", err)
	}
	d[fourCC] = c.NewDecoder()
	return d[fourCC], nil
}

// Packer converts VR2Gather's frames to a codec.
type Packer struct {
	encoder  codec.Encoder
	decoders decoders
	cloud    pointcloud.Cloud
}

// NewPacker returns a packer to a codec.
func NewPacker(to codec.Codec) *Packer {
	return &Packer{encoder: to.NewEncoder(), decoders: make(decoders)}
}

// Pack transcodes the data of a frame of the codec fourCC, without VR2Gather's header, and appends the result to dst. A
// frame without points yields no data. Errors are those of the codecs, and wrap codec.ErrUnknown if the codec is
// unknown.
func (p *Packer) Pack(dst []byte, fourCC codec.FourCC, data []byte) ([]byte, error) {
	decoder, err := p.decoders.of(fourCC)
	if err != nil {
		return dst, err
	}
	if err := decoder.Decode(&p.cloud, data); err != nil {
		return dst, err
	}
	if p.cloud.Len() == 0 {
		return dst, nil
	}
	return p.encoder.Encode(dst, &p.cloud, grid(p.cloud.Bounds()))
}

// Unpacker converts frames of any codec of this program to VR2Gather's format.
type Unpacker struct {
	encoder  codec.Encoder
	decoders decoders
	cloud    pointcloud.Cloud
	encoded  []byte
}

// NewUnpacker returns an unpacker.
func NewUnpacker() *Unpacker {
	return &Unpacker{encoder: codec.CWI0.NewEncoder(), decoders: make(decoders)}
}

// Unpack appends to dst a cwi0 frame with VR2Gather's header, converted from a frame of another codec. Empty data is a
// tile without points. Errors are those of the codecs, and wrap codec.ErrUnknown if the codec is unknown.
func (u *Unpacker) Unpack(dst []byte, fourCC codec.FourCC, data []byte, capture time.Time) ([]byte, error) {
	u.cloud.Reset()
	if len(data) > 0 {
		decoder, err := u.decoders.of(fourCC)
		if err != nil {
			return dst, err
		}
		if err := decoder.Decode(&u.cloud, data); err != nil {
			return dst, err
		}
	}
	u.encoded = u.encoded[:0]
	if n := u.cloud.Len(); n > 0 {
		// The codec may have omitted colours, which VR2Gather requires.
		for len(u.cloud.Colors) < n {
			u.cloud.Colors = append(u.cloud.Colors, [3]uint8{128, 128, 128})
		}
		var err error
		if u.encoded, err = u.encoder.Encode(u.encoded, &u.cloud, lossless(u.cloud.Bounds())); err != nil {
			return dst, err
		}
	}
	begin := len(dst)
	dst = append(dst, make([]byte, vr2gather.FrameHeaderSize)...)
	dst = codec.StampCWI0(dst, u.encoded, capture)
	header := vr2gather.NewFrameHeader(vr2gather.CodecRawPoints, len(dst)-begin-vr2gather.FrameHeaderSize, capture)
	header.Append(dst[begin:begin])
	return dst, nil
}
