package feedback

import "encoding/binary"

// Sizes and symbols of transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
const (
	transportHeader = 20
	maxRunLength    = 1<<13 - 1
	oneBitSymbols   = 14 // in a vector of received or not
	twoBitSymbols   = 7  // in a vector of all symbols

	notReceived = 0
	smallDelta  = 1 // one byte, 0 to 63.75 ms
	largeDelta  = 2 // two bytes, -8,192 to 8,191.75 ms

	transportFormat = 15  // RTPFB message type
	transportType   = 205 // RTPFB (RFC 4585 section 6.2)
)

// transportEncoder encodes the statuses of one report: packet chunks and arrival time deltas. Symbols are collected
// until the chunk that holds most of them is known: a run of equal ones, 14 without large deltas, or 7.
type transportEncoder struct {
	limit  int    // bytes of the whole report
	chunks []byte // complete chunks
	deltas []byte

	// The collected symbols, the latest lowest: two bits and one bit each, valid for up to 14 symbols. More are a run.
	twoBits, oneBit uint32
	size            int
	last            uint32
	same, large     bool // all are equal; one is a large delta
}

func (e *transportEncoder) reset(limit int) {
	*e = transportEncoder{limit: limit, chunks: e.chunks[:0], deltas: e.deltas[:0], same: true}
}

// add adds lost numbers and then a packet that arrived delta ticks after the previous one. It returns false, and adds
// nothing, if they might not fit. In addition to the complete chunks there can be two for the collected symbols, two
// for lost numbers that complete a chunk and begin the next, those for full runs, and one for the packet.
func (e *transportEncoder) add(lost int64, delta int16) bool {
	chunks := len(e.chunks) + 2*(5+int(lost)/maxRunLength)
	if (transportHeader+chunks+len(e.deltas)+2+3)&^3 > e.limit {
		return false
	}
	for lost > 0 {
		if e.push(notReceived); e.same && e.size >= oneBitSymbols {
			run := min(lost-1, int64(maxRunLength-e.size))
			e.size += int(run)
			lost -= run
		}
		lost--
	}
	if delta >= 0 && delta <= 255 {
		e.push(smallDelta)
		e.deltas = append(e.deltas, byte(delta))
	} else {
		e.push(largeDelta)
		e.deltas = binary.BigEndian.AppendUint16(e.deltas, uint16(delta))
	}
	return true
}

// push collects a symbol, after encoding the symbols that cannot share a chunk with it.
func (e *transportEncoder) push(symbol uint32) {
	switch {
	case e.size < twoBitSymbols:
	case e.same && symbol == e.last && e.size < maxRunLength:
	case e.size < oneBitSymbols && !e.large && symbol != largeDelta:
	default:
		e.chunk()
	}
	e.same = e.size == 0 || e.same && symbol == e.last
	e.large = e.large || symbol == largeDelta
	e.twoBits, e.oneBit, e.last = e.twoBits<<2|symbol, e.oneBit<<1|symbol&1, symbol
	e.size++
}

// chunk encodes the oldest collected symbols: all of them, or 7 that are followed by up to 6.
func (e *transportEncoder) chunk() {
	switch {
	case e.same:
		e.emit(e.last<<13 | uint32(e.size))
	case e.size == oneBitSymbols:
		e.emit(0x8000 | e.oneBit&(1<<oneBitSymbols-1))
	default:
		rest := e.size - twoBitSymbols
		e.emit(0xc000 | e.twoBits>>(2*rest)&(1<<(2*twoBitSymbols)-1))
		e.keep(rest)
		return
	}
	e.keep(0)
}

// keep keeps the latest size symbols.
func (e *transportEncoder) keep(size int) {
	e.size = size
	e.twoBits &= 1<<(2*size) - 1
	e.large = e.twoBits&0xaaaaaaaa != 0
	// The last symbol repeated is the multiple of 01 01 … by the symbol.
	e.same = e.twoBits == e.last*(0x55555555&(1<<(2*size)-1))
}

// finish encodes all remaining symbols. Unused space of a vector is zero.
func (e *transportEncoder) finish() {
	switch {
	case e.size == 0:
	case e.same:
		e.emit(e.last<<13 | uint32(e.size))
	case e.size <= twoBitSymbols:
		e.emit(0xc000 | e.twoBits<<(2*(twoBitSymbols-e.size))&(1<<(2*twoBitSymbols)-1))
	default:
		e.emit(0x8000 | e.oneBit<<(oneBitSymbols-e.size)&(1<<oneBitSymbols-1))
	}
	e.size = 0
}

func (e *transportEncoder) emit(chunk uint32) {
	e.chunks = binary.BigEndian.AppendUint16(e.chunks, uint16(chunk))
}

// transportReport is the header of a report.
type transportReport struct {
	sender, media uint32
	base          uint16 // first number covered
	count         uint16 // numbers covered
	reference     uint32 // in units of 64 ms, 24 bits
	feedback      uint8  // counts the reports
}

// append appends the report to dst. Bytes up to the next multiple of 4 are zero and no RTCP padding, which only the
// last packet of a compound may have (RFC 3550 section 6.4.1).
func (e *transportEncoder) append(dst []byte, r transportReport) []byte {
	e.finish()
	size := transportHeader + len(e.chunks) + len(e.deltas)
	padding := -size & 3
	dst = append(dst, 0x80|transportFormat, transportType)
	dst = binary.BigEndian.AppendUint16(dst, uint16((size+padding)/4-1))
	dst = binary.BigEndian.AppendUint32(dst, r.sender)
	dst = binary.BigEndian.AppendUint32(dst, r.media)
	dst = binary.BigEndian.AppendUint16(dst, r.base)
	dst = binary.BigEndian.AppendUint16(dst, r.count)
	dst = binary.BigEndian.AppendUint32(dst, r.reference<<8|uint32(r.feedback))
	dst = append(dst, e.chunks...)
	dst = append(dst, e.deltas...)
	return append(dst, make([]byte, padding)...)
}
