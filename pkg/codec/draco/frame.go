package draco

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/codec"
)

// Values of Draco's bit stream 2.3 for the kinds of frames that this codec supports: points in a
// kd-tree or in their order, with or without colours.
const (
	// magic contains name, version and encoder type (point cloud). The encoder's method and two
	// bytes of flags (no metadata) follow.
	magic            = "DRACO\x02\x03\x00"
	methodSequential = 0
	methodKdTree     = 1
	typePosition     = 0 // GeometryAttribute::POSITION
	typeColor        = 2 // GeometryAttribute::COLOR
	typeUint8        = 2 // DT_UINT8
	typeFloat32      = 9 // DT_FLOAT32
	maxLevel         = 6 // highest compression level of trees
	// sequentialCoders is SEQUENTIAL_ATTRIBUTE_ENCODER_QUANTIZATION for positions and
	// SEQUENTIAL_ATTRIBUTE_ENCODER_INTEGER for colours.
	sequentialCoders = "\x02\x01"

	magicBytes       = len(magic) + 3
	attributeBytes   = 5                                       // with a unique id of one byte
	leastHeaderBytes = magicBytes + 4 + 2 + attributeBytes + 1 // without colours
	trailerBytes     = 17                                      // minimum position and range, four float32; bits
	uniqueIDBytes    = 5                                       // longest variable-length integer of 32 bits
)

// header precedes the points, trailer follows them.
type header struct {
	points     uint32
	sequential bool
	colored    bool
	level      int // compression level of a tree, effort for symbols of a sequence
}

type trailer struct {
	min   [3]float32
	scale float32 // metres for the largest quantized value
	bits  int
}

func (h header) appendTo(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, h.method(), 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, h.points)
	dst = append(dst, 1, h.attributes()) // one coder for all attributes
	// Each attribute has a type, data type, number of components, normalised flag and unique id.
	dst = append(dst, typePosition, typeFloat32, 3, 0, 0)
	if h.colored {
		dst = append(dst, typeColor, typeUint8, 3, 1, 1)
	}
	if h.sequential {
		return append(dst, sequentialCoders[:h.attributes()]...)
	}
	return append(dst, uint8(h.level))
}

func (h header) method() uint8 {
	if h.sequential {
		return methodSequential
	}
	return methodKdTree
}

func (h header) attributes() uint8 {
	if h.colored {
		return 2
	}
	return 1
}

func (t trailer) appendTo(dst []byte) []byte {
	for _, v := range t.min {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(t.scale))
	return append(dst, uint8(t.bits))
}

// parse splits a frame and limits its announced number of points before memory is allocated.
func parse(data []byte) (h header, inside []byte, t trailer, err error) {
	if len(data) < leastHeaderBytes+trailerBytes {
		return h, nil, t, fmt.Errorf(
			"%w: %d bytes, expected at least %d",
			codec.ErrMalformed,
			len(data),
			leastHeaderBytes+trailerBytes,
		)
	}
	end := len(data) - trailerBytes
	h, inside, err = parseHeader(data[:end])
	if err != nil {
		return h, nil, t, err
	}
	if most := codec.MostPoints(len(data), MaxPoints); int64(h.points) > int64(most) {
		return h, nil, t, fmt.Errorf(
			"%w: %d points in %d bytes, expected at most %d",
			codec.ErrMalformed,
			h.points,
			len(data),
			most,
		)
	}
	t, err = parseTrailer(data[end:])
	return h, inside, t, err
}

func parseHeader(data []byte) (h header, inside []byte, err error) {
	if string(data[:len(magic)]) != magic || data[len(magic)] > methodKdTree ||
		data[len(magic)+1]|data[len(magic)+2] != 0 {
		return h, nil, fmt.Errorf(
			"%w: begins with % x, expected % x, then 00 or 01, 00 00"+
				" (Draco 2.3, point cloud, sequential or kd-tree, no metadata)",
			codec.ErrMalformed,
			data[:magicBytes],
			magic,
		)
	}
	h.sequential = data[len(magic)] == methodSequential
	h.points = binary.LittleEndian.Uint32(data[magicBytes:])
	if h.points == 0 {
		return h, nil, fmt.Errorf("%w: 0 points, expected 1 or more", codec.ErrMalformed)
	}
	attributes := data[magicBytes+4:]
	if attributes[0] != 1 || attributes[1] != 1 && attributes[1] != 2 {
		return h, nil, fmt.Errorf(
			"%w: %d attribute coders with %d attributes, expected 1 with 1 or 2",
			codec.ErrMalformed,
			attributes[0],
			attributes[1],
		)
	}
	h.colored = attributes[1] == 2
	rest, err := parseAttribute(attributes[2:], [...]byte{typePosition, typeFloat32, 3})
	if err == nil && h.colored {
		rest, err = parseAttribute(rest, [...]byte{typeColor, typeUint8, 3})
	}
	if err != nil {
		return h, nil, err
	}
	coders := sequentialCoders[:attributes[1]]
	switch {
	case h.sequential && string(rest[:min(len(rest), len(coders))]) != coders:
		return h, nil, fmt.Errorf(
			"%w: attributes are coded by % x, expected % x",
			codec.ErrMalformed,
			rest[:min(len(rest), len(coders))],
			coders,
		)
	case h.sequential:
		return h, rest[len(coders):], nil
	case len(rest) == 0 || rest[0] > maxLevel:
		return h, nil, fmt.Errorf(
			"%w: compression level is % x, expected 0 to %d",
			codec.ErrMalformed,
			rest[:min(len(rest), 1)],
			maxLevel,
		)
	}
	h.level = int(rest[0])
	return h, rest[1:], nil
}

// parseAttribute parses one attribute of the header and returns the data after it.
func parseAttribute(data []byte, want [3]byte) ([]byte, error) {
	if len(data) < len(want) || [3]byte(data) != want {
		return nil, fmt.Errorf(
			"%w: attribute is % x, expected % x (position of three floats, then perhaps colour of three bytes)",
			codec.ErrMalformed,
			data[:min(len(data), len(want))],
			want,
		)
	}
	// The normalised flag has no meaning here. The attribute's unique id, of any value, follows.
	idAt := len(want) + 1
	id, n := uint64(0), 0
	if len(data) > idAt {
		id, n = binary.Uvarint(data[idAt:min(len(data), idAt+uniqueIDBytes)])
	}
	if n <= 0 || id > math.MaxUint32 {
		return nil, fmt.Errorf("%w: attribute has no valid unique id", codec.ErrMalformed)
	}
	return data[idAt+n:], nil
}

func parseTrailer(data []byte) (t trailer, err error) {
	var values [4]float32
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		if values[i]-values[i] != 0 {
			return t, fmt.Errorf(
				"%w: quantisation has the value %g, expected a finite value",
				codec.ErrMalformed,
				values[i],
			)
		}
	}
	t = trailer{min: [3]float32(values[:3]), scale: values[3], bits: int(data[16])}
	largest := max(t.min[0], t.min[1], t.min[2]) + t.scale
	switch {
	case largest-largest != 0:
		return t, fmt.Errorf(
			"%w: quantisation reaches from %v by %g m, expected finite positions",
			codec.ErrMalformed,
			t.min,
			t.scale,
		)
	case !(t.scale > 0):
		return t, fmt.Errorf("%w: quantisation range is %g m, expected more than 0", codec.ErrMalformed, t.scale)
	case t.bits < 1 || t.bits > 30:
		return t, fmt.Errorf("%w: %d position bits, expected 1 to 30", codec.ErrMalformed, t.bits)
	}
	return t, nil
}
