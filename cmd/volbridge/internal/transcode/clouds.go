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
	// gridStep is the distance of two positions, in metres, of what is encoded: cameras of VR2Gather's kind measure no
	// better than 2 mm. A power of two leaves no rounding, so that boxes of all sizes share one grid.
	gridStep = 1.0 / 1024
	// leastBits and mostBits are the bits per coordinate of the smallest and largest box. The smallest has edges of 8 m
	// around the origin, where VR2Gather puts whom it captures.
	leastBits, mostBits = 13, 24
	// fastest is the speed of encoders: live frames do not wait.
	fastest = 10
	// exactBits is enough for positions that come from another codec's grid: it has hardly more, and float32 no more.
	exactBits = 24
)

// grid is how a cloud within bounds is quantised: in steps of about a millimetre, in a box around the origin that
// depends on nothing but how far the cloud reaches, so that tiles, qualities and frames line up. Points farther than 8
// km from the origin are moved there.
func grid(bounds volumetric.BoundingBox) codec.Params {
	params := codec.Params{Speed: fastest}
	for bits := leastBits; bits <= mostBits; bits++ {
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

// exactly is how a cloud within bounds is quantised so that nothing of it is lost.
func exactly(bounds volumetric.BoundingBox) codec.Params {
	params := codec.Params{PositionBits: exactBits, Speed: fastest, Box: bounds}
	// A cloud of one place has no edge, which a box must have.
	if params.Range() <= 0 {
		for axis, v := range bounds.Max {
			params.Box.Max[axis] = max(v+gridStep, math.Nextafter32(v, math.MaxFloat32))
		}
	}
	return params
}

// Packer makes frames of a codec from VR2Gather's.
type Packer struct {
	encoder codec.Encoder
	decoder codec.Decoder
	cloud   pointcloud.Cloud
}

// NewPacker makes a packer to a codec.
func NewPacker(to codec.Codec) *Packer {
	return &Packer{encoder: to.NewEncoder(), decoder: codec.CWI0.NewDecoder()}
}

// Pack appends to dst what the codec makes of the data of a cwi0 frame, without VR2Gather's header: nothing where it
// has no points. Errors are those of the codecs.
func (p *Packer) Pack(dst, data []byte) ([]byte, error) {
	if err := p.decoder.Decode(&p.cloud, data); err != nil {
		return dst, err
	}
	if p.cloud.Len() == 0 {
		return dst, nil
	}
	return p.encoder.Encode(dst, &p.cloud, grid(p.cloud.Bounds()))
}

// Unpacker makes VR2Gather's frames from those of any codec of this program.
type Unpacker struct {
	encoder  codec.Encoder
	decoders map[codec.FourCC]codec.Decoder
	cloud    pointcloud.Cloud
	encoded  []byte
}

// NewUnpacker makes an unpacker.
func NewUnpacker() *Unpacker {
	return &Unpacker{encoder: codec.CWI0.NewEncoder(), decoders: make(map[codec.FourCC]codec.Decoder)}
}

// Unpack appends to dst the cwi0 frame, VR2Gather's header included, of what a codec made, which is empty for a tile
// without points. Errors are those of the codecs, and wrap codec.ErrUnknown where there is none of the name.
func (u *Unpacker) Unpack(dst []byte, fourCC codec.FourCC, data []byte, capture time.Time) ([]byte, error) {
	u.cloud.Reset()
	if len(data) > 0 {
		decoder, err := u.decoder(fourCC)
		if err != nil {
			return dst, err
		}
		if err := decoder.Decode(&u.cloud, data); err != nil {
			return dst, err
		}
	}
	u.encoded = u.encoded[:0]
	if n := u.cloud.Len(); n > 0 {
		// A codec may have left the colours out: VR2Gather knows no points without.
		for len(u.cloud.Colors) < n {
			u.cloud.Colors = append(u.cloud.Colors, [3]uint8{128, 128, 128})
		}
		var err error
		if u.encoded, err = u.encoder.Encode(u.encoded, &u.cloud, exactly(u.cloud.Bounds())); err != nil {
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

// decoder is that of a codec.
func (u *Unpacker) decoder(fourCC codec.FourCC) (codec.Decoder, error) {
	if decoder := u.decoders[fourCC]; decoder != nil {
		return decoder, nil
	}
	c, err := codec.ByFourCC(fourCC)
	if err != nil {
		return nil, fmt.Errorf("transcode: %w", err)
	}
	u.decoders[fourCC] = c.NewDecoder()
	return u.decoders[fourCC], nil
}
