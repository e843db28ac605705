//go:build cgo

package draco

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/codec"
)

// What Draco's bit stream 2.3 writes for the only kind of frame that this codec has.
const (
	// begin is name, version, encoder type (point cloud), encoder method (kd-tree) and flags (no metadata).
	begin         = "DRACO\x02\x03\x00\x01\x00\x00"
	typePosition  = 0  // GeometryAttribute::POSITION
	typeColor     = 2  // GeometryAttribute::COLOR
	typeUint8     = 2  // DT_UINT8
	typeFloat32   = 9  // DT_FLOAT32
	maxLevel      = 6  // highest compression level
	headerBytes   = 28 // with unique ids of one byte
	trailerBytes  = 17 // least position, range: four float32; bits
	uniqueIDBytes = 5  // longest variable-length integer of 32 bits
)

// header is what precedes the tree; trailer what follows it.
type header struct {
	points uint32
	level  int
}

type trailer struct {
	min   [3]float32
	scale float32 // metres that the largest quantised value stands for
	bits  int
}

func (h header) appendTo(dst []byte) []byte {
	dst = append(dst, begin...)
	dst = binary.LittleEndian.AppendUint32(dst, h.points)
	dst = append(dst, 1) // attribute coders
	dst = append(dst, 2) // attributes: type, data type, components, normalised, unique id
	dst = append(dst, typePosition, typeFloat32, 3, 0, 0)
	dst = append(dst, typeColor, typeUint8, 3, 1, 1)
	return append(dst, uint8(h.level))
}

func (t trailer) appendTo(dst []byte) []byte {
	for _, v := range t.min {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(t.scale))
	return append(dst, uint8(t.bits))
}

// parse takes a frame apart and bounds what it claims before anything is made from it.
func parse(data []byte) (h header, tree []byte, t trailer, err error) {
	if len(data) < headerBytes+trailerBytes {
		return h, nil, t, fmt.Errorf("%w: %d bytes, expected at least %d", codec.ErrMalformed, len(data), headerBytes+trailerBytes)
	}
	end := len(data) - trailerBytes
	h, tree, err = parseHeader(data[:end])
	if err != nil {
		return h, nil, t, err
	}
	t, err = parseTrailer(data[end:])
	return h, tree, t, err
}

func parseHeader(data []byte) (h header, tree []byte, err error) {
	if string(data[:len(begin)]) != begin {
		return h, nil, fmt.Errorf("%w: begins with % x, expected % x: Draco 2.3, point cloud, kd-tree, no metadata",
			codec.ErrMalformed, data[:len(begin)], begin)
	}
	h.points = binary.LittleEndian.Uint32(data[len(begin):])
	if h.points == 0 || h.points > MaxPoints {
		return h, nil, fmt.Errorf("%w: %d points, expected 1 to %d", codec.ErrMalformed, h.points, MaxPoints)
	}
	attributes := data[len(begin)+4:]
	if attributes[0] != 1 || attributes[1] != 2 {
		return h, nil, fmt.Errorf("%w: %d attribute coders with %d attributes, expected 1 with 2", codec.ErrMalformed, attributes[0], attributes[1])
	}
	rest := attributes[2:]
	for _, want := range [...][3]byte{{typePosition, typeFloat32, 3}, {typeColor, typeUint8, 3}} {
		if len(rest) < len(want) || [3]byte(rest) != want {
			return h, nil, fmt.Errorf("%w: attribute is % x, expected % x (position of three floats, then colour of three bytes)",
				codec.ErrMalformed, rest[:min(len(rest), len(want))], want)
		}
		// A flag says whether values are normalised, which tells nothing here; then comes the attribute's unique id, of any value.
		idAt := len(want) + 1
		id, n := uint64(0), 0
		if len(rest) > idAt {
			id, n = binary.Uvarint(rest[idAt:min(len(rest), idAt+uniqueIDBytes)])
		}
		if n <= 0 || id > math.MaxUint32 {
			return h, nil, fmt.Errorf("%w: attribute has no valid unique id", codec.ErrMalformed)
		}
		rest = rest[idAt+n:]
	}
	if len(rest) == 0 || rest[0] > maxLevel {
		return h, nil, fmt.Errorf("%w: compression level is % x, expected 0 to %d", codec.ErrMalformed, rest[:min(len(rest), 1)], maxLevel)
	}
	h.level = int(rest[0])
	return h, rest[1:], nil
}

func parseTrailer(data []byte) (t trailer, err error) {
	var values [4]float32
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		if values[i]-values[i] != 0 {
			return t, fmt.Errorf("%w: quantisation has the value %g, expected finite ones", codec.ErrMalformed, values[i])
		}
	}
	t = trailer{min: [3]float32(values[:3]), scale: values[3], bits: int(data[16])}
	largest := max(t.min[0], t.min[1], t.min[2]) + t.scale
	switch {
	case largest-largest != 0:
		return t, fmt.Errorf("%w: quantisation reaches from %v by %g m, expected finite positions", codec.ErrMalformed, t.min, t.scale)
	case !(t.scale > 0):
		return t, fmt.Errorf("%w: quantisation range is %g m, expected more than 0", codec.ErrMalformed, t.scale)
	case t.bits < 1 || t.bits > 30:
		return t, fmt.Errorf("%w: %d position bits, expected 1 to 30", codec.ErrMalformed, t.bits)
	}
	return t, nil
}
