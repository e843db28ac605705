package datachannels

import (
	"encoding/binary"
	"hash/crc32"
	"net"
	"sync"
	"time"
)

const (
	// immediately is the flag of a DATA chunk whose acknowledgement must not be delayed (RFC 9260 section 3.3.1).
	immediately = 1 << 3
	// checksumOffset is the offset of the CRC32c of a packet, which is little-endian (RFC 9260 appendix A).
	checksumOffset = 8
	// repeatInterval is the time between two copies of an acknowledgement that no other follows, and repeats the number
	// of further copies. With 5 % of loss, one acknowledgement in 8,000 loses all of them.
	repeatInterval = 10 * time.Millisecond
	repeats        = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// acknowledgeAtOnce changes a packet with DATA chunks so that SCTP does not delay the acknowledgement. Pion delays the
// acknowledgement of a single packet by 200 ms. Meanwhile a browser's SCTP does not notice a loss: it needs three
// acknowledgements of later packets.
func acknowledgeAtOnce(packet []byte) {
	if len(packet) < sctpHeader {
		return
	}
	changed := false
	for rest := packet[sctpHeader:]; len(rest) >= chunkHeader; {
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if size < chunkHeader || size > len(rest) {
			break
		}
		if rest[0] == chunkData {
			rest[1] |= immediately
			changed = true
		}
		rest = rest[min((size+3)&^3, len(rest)):]
	}
	checksum := packet[checksumOffset:sctpHeader]
	// A checksum of zero stands for none (RFC 9653).
	if !changed || binary.LittleEndian.Uint32(checksum) == 0 {
		return
	}
	clear(checksum)
	binary.LittleEndian.PutUint32(checksum, crc32.Checksum(packet, castagnoli))
}

// acknowledges reports whether a packet has an acknowledgement and nothing else.
func acknowledges(packet []byte) bool {
	if len(packet) < sctpHeader+chunkHeader || packet[sctpHeader] != chunkSACK {
		return false
	}
	size := int(binary.BigEndian.Uint16(packet[sctpHeader+2:]))
	return (size+3)&^3 == len(packet)-sctpHeader
}

// repeater sends the last acknowledgement again. One acknowledgement often stands for all packets under way. If it is
// lost, a browser sends nothing for 400 ms and continues with a window of one packet.
type repeater struct {
	conn net.Conn
	// try calls a function and reports whether it returned.
	try func(func()) bool

	mu    sync.Mutex
	last  []byte
	left  int
	timer *time.Timer
}

// sent records a packet that was sent.
func (r *repeater) sent(packet []byte) {
	if !acknowledges(packet) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.left = append(r.last[:0], packet...), repeats
	if r.timer == nil {
		r.timer = time.AfterFunc(repeatInterval, func() { r.try(r.repeat) })
	} else {
		r.timer.Reset(repeatInterval)
	}
}

// repeat sends the last acknowledgement. On a closed connection it has no effect.
func (r *repeater) repeat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == 0 {
		return
	}
	if r.left--; r.left > 0 {
		r.timer.Reset(repeatInterval)
	}
	_, _ = r.conn.Write(r.last)
}
