package zstd

// curveBits is the number of a coordinate's bits, from the top, that are coded along the curve.
// Three coordinates have 42 bits, which fit one 64-bit word with the 22 bits of a point's index, so
// that one word per point is sorted. Lower bits of finer grids are coded unchanged.
const (
	curveBits = 14
	indexBits = 22
)

// spread maps seven-bit numbers to the same bits at intervals of three.
var spread = func() (table [128]uint64) {
	for value := range table {
		for bit := range 7 {
			table[value] |= uint64(value>>bit&1) << (3 * bit)
		}
	}
	return table
}()

// gathered maps twelve bits of a position on the curve to four bits of each coordinate: x from bit
// 0, y from bit 8, z from bit 16.
var gathered = func() (table [4096]uint32) {
	for place := range table {
		for bit := range 12 {
			table[place] |= uint32(place>>bit&1) << (bit/3 + 8*(bit%3))
		}
	}
	return table
}()

// mortonCode returns the position on the curve of a point whose coordinates have up to curveBits
// bits.
func mortonCode(x, y, z uint32) uint64 {
	return spreadBits(x) | spreadBits(y)<<1 | spreadBits(z)<<2
}

func spreadBits(v uint32) uint64 { return spread[v&127] | spread[v>>7&127]<<21 }

// coordinatesOf returns the coordinates of a position on the curve of up to 3·curveBits bits.
func coordinatesOf(place uint64) [3]uint32 {
	a, b, c, d := gathered[place&4095], gathered[place>>12&4095], gathered[place>>24&4095], gathered[place>>36&4095]
	return [3]uint32{
		a&15 | b&15<<4 | c&15<<8 | d&15<<12,
		a>>8&15 | b>>8&15<<4 | c>>8&15<<8 | d>>8&15<<12,
		a>>16&15 | b>>16&15<<4 | c>>16&15<<8 | d>>16&15<<12,
	}
}

// sorter sorts numbers by a range of their bits.
type sorter struct {
	spare []uint64
}

// digitBits is the number of bits per pass: 2,048 counters fit the processor's first-level cache.
const digitBits = 11

// sort sorts values by the bits from..to-1. The sort is stable. The result is in the memory of
// values or of the sorter; the sorter keeps the other.
func (s *sorter) sort(values []uint64, from, to int) []uint64 {
	if cap(s.spare) < len(values) {
		s.spare = make([]uint64, len(values))
	}
	into := s.spare[:len(values)]
	for ; from < to; from += digitBits {
		var begin [1 << digitBits]int
		mask := uint64(1)<<min(digitBits, to-from) - 1
		for _, v := range values {
			begin[v>>from&mask]++
		}
		sum := 0
		for digit, count := range begin {
			begin[digit] = sum
			sum += count
		}
		for _, v := range values {
			digit := v >> from & mask
			into[begin[digit]] = v
			begin[digit]++
		}
		values, into = into, values
	}
	s.spare = into
	return values
}
