package cwi1

import (
	"encoding/binary"
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

const (
	// values is the number of values of a byte. tableSize is the size of their cumulative frequencies.
	values    = 256
	tableSize = 4 * (values + 1)
	// codeBytes is the size of the range coder's state.
	codeBytes = 4
	// top and bottom are the range coder's limits: the highest byte is final if low and low+width agree in it; the
	// width is at least bottom, and larger than the sum of all frequencies.
	top, bottom = 1 << 24, 1 << 16
)

// section decodes the bytes of a range-coded section.
type section struct {
	data             []byte // the data not yet read
	low, width, code uint32
	cumulative       [values + 1]uint32
	// valueOf has the value of each frequency below the sum.
	valueOf [bottom]uint8
}

// start begins a section at the start of the data. Errors wrap codec.ErrMalformed.
func (s *section) start(data []byte) error {
	if len(data) < tableSize+codeBytes {
		return fmt.Errorf("%w: section has %d bytes, expected at least %d", codec.ErrMalformed, len(data),
			tableSize+codeBytes)
	}
	for i := range s.cumulative {
		s.cumulative[i] = binary.LittleEndian.Uint32(data[4*i:])
		if i == 0 && s.cumulative[0] != 0 || i > 0 && s.cumulative[i] <= s.cumulative[i-1] ||
			s.cumulative[i] >= bottom {
			return fmt.Errorf("%w: cumulative frequency %d is %d, expected ascending numbers from 0 to %d",
				codec.ErrMalformed, i, s.cumulative[i], bottom-1)
		}
		if i > 0 {
			part := s.valueOf[s.cumulative[i-1]:s.cumulative[i]]
			for j := range part {
				part[j] = uint8(i - 1)
			}
		}
	}
	s.low, s.width = 0, 1<<32-1
	s.code = binary.BigEndian.Uint32(data[tableSize:])
	s.data = data[tableSize+codeBytes:]
	return nil
}

// next decodes a byte. Errors wrap codec.ErrMalformed.
func (s *section) next() (uint8, error) {
	s.width /= s.cumulative[values]
	frequency := (s.code - s.low) / s.width
	if frequency >= s.cumulative[values] {
		return 0, fmt.Errorf("%w: frequency is %d, expected at most %d", codec.ErrMalformed, frequency,
			s.cumulative[values]-1)
	}
	value := s.valueOf[frequency]
	s.low += s.cumulative[value] * s.width
	s.width *= s.cumulative[int(value)+1] - s.cumulative[value]
	for {
		if s.low^(s.low+s.width) >= top {
			if s.width >= bottom {
				return value, nil
			}
			// The width ends at the next multiple of bottom, so that the coder needs no carries.
			s.width = -s.low & (bottom - 1)
		}
		if len(s.data) == 0 {
			return 0, fmt.Errorf("%w: section ends early", codec.ErrMalformed)
		}
		s.code = s.code<<8 | uint32(s.data[0])
		s.data = s.data[1:]
		s.low <<= 8
		s.width <<= 8
	}
}

// rest returns the data behind the section.
func (s *section) rest() []byte { return s.data }
