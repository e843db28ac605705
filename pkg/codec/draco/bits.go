package draco

import (
	"encoding/binary"
	"errors"
	"math"
)

// errData reports data that no encoder produces. The decoder wraps it with the size of the frame.
var errData = errors.New("inconsistent data")

// reader reads the parts of a frame's content one after the other.
type reader struct{ data []byte }

// take returns the next bytes.
func (r *reader) take(size uint64) ([]byte, error) {
	if size > uint64(len(r.data)) {
		return nil, errData
	}
	taken := r.data[:size]
	r.data = r.data[size:]
	return taken, nil
}

func (r *reader) uint8() (uint8, error) {
	b, err := r.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

func (r *reader) uint32() (uint32, error) {
	b, err := r.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

// varint returns an integer of variable length, of at most most.
func (r *reader) varint(most uint64) (uint64, error) {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > most {
		return 0, errData
	}
	r.data = r.data[n:]
	return v, nil
}

// bitReader reads bits from the top of little-endian words of 32 bits: those of the frame, or those that an entropy
// decoder returns.
type bitReader struct {
	words   []byte
	entropy *bitDecoder
	pending uint64 // the low valid bits are next
	valid   uint
	// exhausted reports that more bits were read than exist. The end of entropy-coded bits is not known.
	exhausted bool
}

// startWords begins a stream of words, which follows its size in bytes.
func (b *bitReader) startWords(r *reader) error {
	size, err := r.uint32()
	if err != nil || size == 0 || size%4 != 0 {
		return errData
	}
	*b = bitReader{}
	b.words, err = r.take(uint64(size))
	return err
}

// startEntropy begins a stream of entropy-coded bits.
func (b *bitReader) startEntropy(r *reader) error {
	*b = bitReader{entropy: new(bitDecoder)}
	return b.entropy.start(r)
}

// get returns the next 0 to 32 bits, zeros beyond the end.
func (b *bitReader) get(n uint) uint32 {
	if b.valid < n {
		b.fill()
	}
	b.valid -= n
	return uint32(b.pending>>(b.valid&63)) & uint32(uint64(1)<<(n&63)-1)
}

func (b *bitReader) fill() {
	word := uint32(0)
	switch {
	case b.entropy != nil:
		for range 32 {
			word = word<<1 | b.entropy.next()
		}
	case len(b.words) > 0:
		word = binary.LittleEndian.Uint32(b.words)
		b.words = b.words[4:]
	default:
		b.exhausted = true
	}
	b.pending = b.pending<<32 | uint64(word)
	b.valid += 32
}

// Parameters of the binary entropy coder (rABS): the precision of the probability, and the lower limit of the state.
const (
	bitPrecision = 256
	bitLimit     = 4096
)

// bitDecoder decodes entropy-coded bits of one probability. It reads the data from the end.
type bitDecoder struct {
	data  []byte
	state uint32
	one   uint32 // probability of a one
}

func (d *bitDecoder) start(r *reader) error {
	zero, err := r.uint8()
	if err != nil {
		return err
	}
	size, err := r.varint(math.MaxUint32)
	if err != nil {
		return err
	}
	data, err := r.take(size)
	if err != nil {
		return err
	}
	// Draco computes in bytes, so that a probability of 0 leaves only zeros.
	d.one = uint32(-zero)
	d.data, d.state, err = startState(data, bitLimit, 3)
	return err
}

// startState returns the first state of an entropy decoder and the data before it. The two highest bits of the last
// byte are the number of further bytes of the state, less than most.
func startState(data []byte, limit uint32, most int) (rest []byte, state uint32, err error) {
	if len(data) == 0 {
		return nil, 0, errData
	}
	size := int(data[len(data)-1]>>6) + 1
	if size > most || size > len(data) {
		return nil, 0, errData
	}
	rest = data[:len(data)-size]
	for i := range size {
		state |= uint32(data[len(rest)+i]) << (8 * i)
	}
	state = state&(1<<(8*size-2)-1) + limit
	if uint64(state) >= 256*uint64(limit) {
		return nil, 0, errData
	}
	return rest, state, nil
}

// next returns the next bit.
func (d *bitDecoder) next() uint32 {
	if d.state < bitLimit && len(d.data) > 0 {
		last := len(d.data) - 1
		d.state = d.state<<8 | uint32(d.data[last])
		d.data = d.data[:last]
	}
	part, rest := d.state/bitPrecision*d.one, d.state%bitPrecision
	if rest < d.one {
		d.state = part + rest
		return 1
	}
	d.state -= part + d.one
	return 0
}
