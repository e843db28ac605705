package rgbd

// probability is the adaptive probability of a bit being 0, in units of 2^-16: the mean of two estimates. fast follows
// the last 16 bits or so. slow begins as a mean of all bits seen, and follows the last 128 or so later, because the
// contexts of a small tile see few bits.
type probability struct {
	fast, slow uint16
	seen       uint8
}

const (
	// half is the probability of a bit without any knowledge.
	half = 1 << 15
	// fastRate and slowRate are the shifts of both estimates.
	fastRate = 4
	slowRate = 7
	// rareBits is the number of bits after which slow has its final rate.
	rareBits = 1<<(slowRate-1) + 1
	// leastRange is the lower bound of the range between two bits.
	leastRange = 1 << 24
)

// slowRates contains the shift of slow by the number of bits seen: about the logarithm of the number. nextSeen contains
// the number after one more bit.
var slowRates, nextSeen = func() (rates, next [256]uint8) {
	for seen := range rates {
		rate := uint8(2)
		for 1<<rate < seen+2 && rate < slowRate {
			rate++
		}
		rates[seen], next[seen] = rate, uint8(min(seen+1, rareBits))
	}
	return rates, next
}()

// forget sets probabilities to a half.
func forget(all []probability) {
	for i := range all {
		all[i] = probability{half, half, 0}
	}
}

// zero returns the probability of 0, never 0 or 65,536.
func (p *probability) zero() uint32 { return (uint32(p.fast) + uint32(p.slow)) >> 1 }

// sawZero adapts the estimates to a bit that is 0, and sawOne to one that is 1. The mask of the shift spares a check.
func (p *probability) sawZero() {
	p.fast += (65535 - p.fast) >> fastRate
	p.slow += (65535 - p.slow) >> (slowRates[p.seen] & 15)
	p.seen = nextSeen[p.seen]
}

func (p *probability) sawOne() {
	p.fast -= p.fast >> fastRate
	p.slow -= p.slow >> (slowRates[p.seen] & 15)
	p.seen = nextSeen[p.seen]
}

// see adapts the estimates to a bit without branches.
func (p *probability) see(bit uint32) {
	set := uint16(-bit)
	p.fast += ((p.fast^^set)>>fastRate ^ set) - set
	p.slow += ((p.slow^^set)>>(slowRates[p.seen]&15) ^ set) - set
	p.seen = nextSeen[p.seen]
}

// rangeEncoder is a binary range coder as in LZMA: Martin, "Range encoding", 1979, with a carry. low is the lower end
// of the interval; bytes that a carry may still change are pending.
type rangeEncoder struct {
	low     uint64
	width   uint32
	cache   uint8
	pending int // cache and the bytes of 255 behind it; 0 before the first byte
	out     []byte
}

// begin starts to append to out.
func (e *rangeEncoder) begin(out []byte) { *e = rangeEncoder{width: 1<<32 - 1, out: out} }

// bit encodes a bit by its probability, which adapts.
func (e *rangeEncoder) bit(p *probability, bit uint32) {
	bound := e.width >> 16 * p.zero()
	if bit == 0 {
		e.width = bound
		p.sawZero()
	} else {
		e.low += uint64(bound)
		e.width -= bound
		p.sawOne()
	}
	for e.width < leastRange {
		e.width <<= 8
		e.shift()
	}
}

// bits encodes the count lowest bits of a value, the highest first, each with a probability of a half.
func (e *rangeEncoder) bits(value uint32, count int) {
	for count--; count >= 0; count-- {
		e.width >>= 1
		if value>>count&1 != 0 {
			e.low += uint64(e.width)
		}
		for e.width < leastRange {
			e.width <<= 8
			e.shift()
		}
	}
}

// shift moves the highest byte of low out.
func (e *rangeEncoder) shift() {
	if e.pending == 0 || e.low < 0xff000000 || e.low > 0xffffffff {
		carry := uint8(e.low >> 32)
		for ; e.pending > 0; e.pending-- {
			e.out = append(e.out, e.cache+carry)
			e.cache = 0xff
		}
		e.cache = uint8(e.low >> 24)
	}
	e.pending++
	e.low = e.low & 0x00ffffff << 8
}

// end appends the rest and returns the output. A decoder reads exactly these bytes.
func (e *rangeEncoder) end() []byte {
	for range 5 {
		e.shift()
	}
	return e.out
}

// rangeDecoder is the decoder of rangeEncoder. code is the distance of the coded value from the lower end of the
// interval, and at the offset of the next byte. Bytes behind the data are 0, and at is then larger than the data.
//
// The method bit is for few decisions. Loops over many keep a copy of the decoder in local variables, and contain the
// code of a decision, because storing the state and calling a function took half of the time.
type rangeDecoder struct {
	code, width uint32
	at          int
	data        []byte
}

// begin starts to decode data.
func (d *rangeDecoder) begin(data []byte) {
	*d = rangeDecoder{width: 1<<32 - 1, data: data}
	for range 4 {
		d.code = d.code<<8 | byteAt(data, d.at)
		d.at++
	}
}

// beyond reports that a byte behind the data was read.
func (d *rangeDecoder) beyond() bool { return d.at > len(d.data) }

// byteAt returns a byte of the data, or 0 behind the data.
func byteAt(data []byte, at int) uint32 {
	if at < len(data) {
		return uint32(data[at])
	}
	return 0
}

// bit decodes a bit by its probability, which adapts.
func (d *rangeDecoder) bit(p *probability) uint32 {
	bound := d.width >> 16 * p.zero()
	bit := uint32(0)
	if d.code < bound {
		d.width = bound
		p.sawZero()
	} else {
		d.code -= bound
		d.width -= bound
		p.sawOne()
		bit = 1
	}
	d.fill()
	return bit
}

// fill reads bytes until the range has its least width.
func (d *rangeDecoder) fill() {
	for d.width < leastRange {
		d.width <<= 8
		d.code = d.code<<8 | byteAt(d.data, d.at)
		d.at++
	}
}

// bits decodes count bits that were encoded with a probability of a half.
func (d *rangeDecoder) bits(count int) uint32 {
	value := uint32(0)
	for range count {
		d.width >>= 1
		value <<= 1
		if d.code >= d.width {
			d.code -= d.width
			value |= 1
		}
		d.fill()
	}
	return value
}
