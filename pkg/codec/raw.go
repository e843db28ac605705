package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Raw is the codec "raw" (FourCC "raw1"): positions quantised and packed, nothing compressed. It needs neither cgo nor much time, and its
// frames are two to three times as large as Draco's. It ignores Params.Speed. A frame is, with all numbers little-endian,
//
//	offset  size        what
//	0       4           number of points, at least 1
//	4       12          Params.Box.Min, three float32 in metres
//	16      12          Params.Box.Max, three float32 in metres
//	28      1           Params.PositionBits, 1 to 30
//	29      3           0
//	32      3·b·points  positions: x, y, z in steps from Min, of b = ceil(bits/8) bytes each
//	…       3·points    colours: red, green, blue
//
// and nothing after that. Tiles without points are frames of length 0.
var Raw Codec = raw{}

func init() { Register(Raw) }

// rawHeaderBytes is the size of what precedes the positions.
const rawHeaderBytes = 32

type raw struct{}

func (raw) FourCC() FourCC      { return FourCC{'r', 'a', 'w', '1'} }
func (raw) Name() string        { return "raw" }
func (raw) NewEncoder() Encoder { return rawEncoder{} }
func (raw) NewDecoder() Decoder { return rawDecoder{} }

type rawEncoder struct{}

// coordinateBytes is the size of one coordinate.
func coordinateBytes(bits int) int { return (bits + 7) / 8 }

// Encode appends the cloud's frame to dst.
func (rawEncoder) Encode(dst []byte, cloud *pointcloud.Cloud, params Params) ([]byte, error) {
	if err := params.Validate(); err != nil {
		return dst, fmt.Errorf("encode raw: %w", err)
	}
	n := cloud.Len()
	switch {
	case n != len(cloud.Colors):
		return dst, fmt.Errorf("encode raw: %w: cloud has %d positions and %d colours, expected as many of both", ErrParams, n, len(cloud.Colors))
	case uint64(n) > math.MaxUint32:
		return dst, fmt.Errorf("encode raw: %w: cloud has %d points, expected at most %d", ErrParams, n, uint32(math.MaxUint32))
	case n == 0:
		return dst, nil
	}
	width := coordinateBytes(params.PositionBits)
	dst = slices.Grow(dst, rawHeaderBytes+n*3*(width+1))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	for _, corner := range [][3]float32{params.Box.Min, params.Box.Max} {
		for _, v := range corner {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	dst = append(dst, uint8(params.PositionBits), 0, 0, 0)
	scale := float64(params.steps()) / float64(params.Range())
	for _, p := range cloud.Positions {
		for axis, v := range p {
			q := quantize(v, params.Box.Min[axis], params.Box.Max[axis], scale)
			for b := range width {
				dst = append(dst, uint8(q>>(8*b)))
			}
		}
	}
	for _, color := range cloud.Colors {
		dst = append(dst, color[0], color[1], color[2])
	}
	return dst, nil
}

type rawDecoder struct{}

// Decode replaces the cloud's points by the frame's.
func (rawDecoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	n, params, err := parseRawHeader(data)
	if err != nil {
		return fmt.Errorf("decode raw: %w", err)
	}
	width := coordinateBytes(params.PositionBits)
	positions, colors := data[rawHeaderBytes:rawHeaderBytes+3*n*width], data[rawHeaderBytes+3*n*width:]
	cloud.Positions = slices.Grow(cloud.Positions, n)[:n]
	cloud.Colors = slices.Grow(cloud.Colors, n)[:n]
	step, largest := params.Step(), params.steps()
	for i := range cloud.Positions {
		for axis := range 3 {
			q := uint32(0)
			for b := range width {
				q |= uint32(positions[(3*i+axis)*width+b]) << (8 * b)
			}
			if q > largest {
				cloud.Reset()
				return fmt.Errorf("decode raw: %w: coordinate %d of point %d is %d steps, expected at most %d", ErrMalformed, axis, i, q, largest)
			}
			// The conversion keeps compilers from fusing the two operations, so that every machine decodes the same grid.
			cloud.Positions[i][axis] = float32(float32(q)*step) + params.Box.Min[axis]
		}
	}
	for i := range cloud.Colors {
		cloud.Colors[i] = [3]uint8(colors[3*i:])
	}
	return nil
}

// parseRawHeader checks the header, and the frame's length against it.
func parseRawHeader(data []byte) (points int, params Params, err error) {
	if len(data) < rawHeaderBytes {
		return 0, params, fmt.Errorf("%w: frame has %d bytes, expected at least %d", ErrMalformed, len(data), rawHeaderBytes)
	}
	var corners [2][3]float32
	for i := range 6 {
		corners[i/3][i%3] = math.Float32frombits(binary.LittleEndian.Uint32(data[4+4*i:]))
	}
	params = Params{PositionBits: int(data[28]), Box: volumetric.BoundingBox{Min: corners[0], Max: corners[1]}}
	if err := params.Validate(); err != nil {
		return 0, params, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	n := uint64(binary.LittleEndian.Uint32(data))
	want := rawHeaderBytes + n*3*uint64(coordinateBytes(params.PositionBits)+1)
	switch {
	case data[29]|data[30]|data[31] != 0:
		return 0, params, fmt.Errorf("%w: reserved bytes are %v, expected 0", ErrMalformed, data[29:32])
	case n == 0:
		return 0, params, fmt.Errorf("%w: frame has a header and no points, expected length 0", ErrMalformed)
	case want != uint64(len(data)):
		return 0, params, fmt.Errorf("%w: frame of %d points has %d bytes, expected %d", ErrMalformed, n, len(data), want)
	}
	return int(n), params, nil
}
