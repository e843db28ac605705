package draco

import (
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

const (
	// tagged and plain are the codings of symbols: by their number of bits and their bits, or with a single table.
	tagged, plain = 0, 1
	// tableBits is the maximum number of bits of symbols with a single table, and lengths the maximum number of
	// symbols of a table of lengths: 0 to 32.
	tableBits, lengths = 18, 33
)

// decodeSequence appends points in their order to the cloud and returns the data behind them.
func decodeSequence(cloud *pointcloud.Cloud, h header, grid trailer, data []byte) ([]byte, error) {
	r := &reader{data}
	values := make([]uint32, 3*int(h.points))
	if err := decodeAttribute(values, 1<<grid.bits-1, r); err != nil {
		return nil, err
	}
	step := grid.step()
	for i := 0; i < len(values); i += 3 {
		cloud.Positions = append(cloud.Positions, grid.position(values[i], values[i+1], values[i+2], step))
	}
	if !h.colored {
		return r.data, nil
	}
	if err := decodeAttribute(values, math.MaxUint8, r); err != nil {
		return nil, err
	}
	for i := 0; i < len(values); i += 3 {
		cloud.Colors = append(cloud.Colors, [3]uint8{uint8(values[i]), uint8(values[i+1]), uint8(values[i+2])})
	}
	return r.data, nil
}

// decodeAttribute reads values of three components, from 0 to largest: differences from the previous point, wrapped
// around the range of the values.
func decodeAttribute(values []uint32, largest uint32, r *reader) error {
	// The prediction is the difference (0), its transform wraps (1), and symbols are entropy-coded (1).
	if kind, err := r.take(3); err != nil || !slices.Equal(kind, []byte{0, 1, 1}) {
		return errData
	}
	if err := decodeSymbols(values, 3, r); err != nil {
		return err
	}
	low, err := r.uint32()
	if err != nil {
		return err
	}
	high, err := r.uint32()
	if err != nil || high < low || high > largest {
		return errData
	}
	size := int64(high) - int64(low) + 1
	for i, symbol := range values {
		difference := int64(symbol >> 1)
		if symbol&1 == 1 {
			difference = -difference - 1
		}
		before := uint32(0)
		if i >= 3 {
			before = values[i-3]
		}
		value := int64(min(max(before, low), high)) + difference
		switch {
		case value > int64(high):
			value -= size
		case value < int64(low):
			value += size
		}
		if value < int64(low) || value > int64(high) {
			return errData
		}
		values[i] = uint32(value)
	}
	return nil
}

// decodeSymbols reads symbols; a group of components has one length if symbols are coded by their length.
func decodeSymbols(symbols []uint32, components int, r *reader) error {
	coding, err := r.uint8()
	if err != nil {
		return err
	}
	var d symbolDecoder
	switch coding {
	case tagged:
		if err := d.start(5, lengths, r); err != nil {
			return err
		}
		return decodeTagged(symbols, components, &d, r)
	case plain:
		width, err := r.uint8()
		if err != nil || width < 1 || width > tableBits {
			return errData
		}
		if err := d.start(int(width), 1<<tableBits, r); err != nil {
			return err
		}
		for i := range symbols {
			symbols[i] = d.next()
		}
		return nil
	}
	return errData
}

// decodeTagged reads symbols of the lengths that the decoder returns, from the low bits of the data.
func decodeTagged(symbols []uint32, components int, d *symbolDecoder, r *reader) error {
	var pending uint64
	var valid uint
	for i := 0; i < len(symbols); i += components {
		width := uint(d.next())
		if width > 32 {
			return errData
		}
		for j := range components {
			for valid < width {
				b, err := r.uint8()
				if err != nil {
					return err
				}
				pending |= uint64(b) << valid
				valid += 8
			}
			symbols[i+j] = uint32(pending & (1<<width - 1))
			pending >>= width
			valid -= width
		}
	}
	return nil
}

// symbolDecoder decodes entropy-coded symbols (rANS). It reads the data from the end.
type symbolDecoder struct {
	data      []byte
	state     uint32
	precision uint // bits
	// frequencies and cumulative have a value for each symbol, and symbolOf a symbol for each frequency.
	frequencies, cumulative []uint32
	symbolOf                []uint32
}

// start reads the table of symbols with the given number of bits, of which there are at most most.
func (d *symbolDecoder) start(width int, most uint64, r *reader) error {
	d.precision = uint(min(max(3*width/2, 12), 20))
	count, err := r.varint(most)
	if err != nil || count == 0 || count/64 > uint64(len(r.data)) {
		return errData
	}
	if err := d.readTable(int(count), r); err != nil {
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
	d.data, d.state, err = startState(data, 4<<d.precision, 4)
	return err
}

// readTable reads the frequencies of symbols. The two low bits of a byte are the number of further bytes of a
// frequency; 3 means that the other bits are the number of further symbols without frequency.
func (d *symbolDecoder) readTable(count int, r *reader) error {
	d.frequencies, d.cumulative = make([]uint32, count), make([]uint32, count)
	for i := 0; i < count; i++ {
		first, err := r.uint8()
		if err != nil {
			return err
		}
		if first&3 == 3 {
			if i += int(first >> 2); i >= count {
				return errData
			}
			continue
		}
		further, err := r.take(uint64(first & 3))
		if err != nil {
			return err
		}
		d.frequencies[i] = uint32(first >> 2)
		for j, b := range further {
			d.frequencies[i] |= uint32(b) << (8*(j+1) - 2)
		}
	}
	d.symbolOf = make([]uint32, 1<<d.precision)
	sum := uint32(0)
	for i, frequency := range d.frequencies {
		d.cumulative[i] = sum
		if frequency > 1<<d.precision-sum {
			return errData
		}
		part := d.symbolOf[sum : sum+frequency]
		for j := range part {
			part[j] = uint32(i)
		}
		sum += frequency
	}
	if sum != 1<<d.precision {
		return errData
	}
	return nil
}

// next returns the next symbol.
func (d *symbolDecoder) next() uint32 {
	for d.state < 4<<d.precision && len(d.data) > 0 {
		last := len(d.data) - 1
		d.state = d.state<<8 | uint32(d.data[last])
		d.data = d.data[:last]
	}
	part, rest := d.state>>d.precision, d.state&(1<<d.precision-1)
	symbol := d.symbolOf[rest]
	d.state = part*d.frequencies[symbol] + rest - d.cumulative[symbol]
	return symbol
}
