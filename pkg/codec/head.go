package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// HeadBytes is the size of a Head in bytes.
const HeadBytes = 32

// Head is the start of a frame of codecs without their own format: the number of points and the
// grid. All numbers are little-endian:
//
//	offset  size  content
//	0       4     number of points, at least 1
//	4       12    Params.Box.Min, three float32 in metres
//	16      12    Params.Box.Max, three float32 in metres
//	28      1     Params.PositionBits, 1 to 30
//	29      1     1 without colours, 0 with colours
//	30      2     0
type Head struct {
	Points uint32
	// Params contains Box, PositionBits and NoColors.
	Params Params
}

// AppendTo appends the head to dst.
func (h Head) AppendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, h.Points)
	for _, corner := range [][3]float32{h.Params.Box.Min, h.Params.Box.Max} {
		for _, v := range corner {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	plain := uint8(0)
	if h.Params.NoColors {
		plain = 1
	}
	return append(dst, uint8(h.Params.PositionBits), plain, 0, 0)
}

// ParseHead parses the head of a frame. The parameters of the result are valid. Errors wrap
// ErrMalformed.
func ParseHead(data []byte) (Head, error) {
	if len(data) < HeadBytes {
		return Head{}, fmt.Errorf("%w: frame has %d bytes, expected at least %d", ErrMalformed, len(data), HeadBytes)
	}
	var corners [2][3]float32
	for i := range 6 {
		corners[i/3][i%3] = math.Float32frombits(binary.LittleEndian.Uint32(data[4+4*i:]))
	}
	h := Head{
		Points: binary.LittleEndian.Uint32(data),
		Params: Params{
			PositionBits: int(data[28]),
			NoColors:     data[29] == 1,
			Box:          volumetric.BoundingBox{Min: corners[0], Max: corners[1]},
		},
	}
	if err := h.Params.Validate(); err != nil {
		return Head{}, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	switch {
	case data[29] > 1 || data[30]|data[31] != 0:
		return Head{}, fmt.Errorf("%w: reserved bytes are %v, expected 0 or 1, 0 and 0", ErrMalformed, data[29:32])
	case h.Points == 0:
		return Head{}, fmt.Errorf("%w: frame has a header and no points, expected length 0", ErrMalformed)
	}
	return h, nil
}
