package datachannels

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// Sizes and chunk types of SCTP (RFC 9260 sections 3.1 to 3.3.4, RFC 3758 section 3.2).
const (
	sctpHeader      = 12
	chunkHeader     = 4
	dataHeader      = 16
	chunkData       = 0
	chunkSACK       = 3
	chunkForwardTSN = 192
)

const (
	// maxFragments is the number of fragments of incomplete messages that SCTP keeps for each stream. One more ends the
	// association. The receive window of 1 MiB holds 912 fragments of 1,150 bytes, and browsers begin each message in
	// the free part of the previous packet. SCTP sorts and searches all fragments for each chunk, which takes some 10
	// µs at this bound.
	maxFragments = 1024
	// chunkRate and chunkBurst limit the transfer chunks (DATA, SACK, FORWARD-TSN), in chunks per second: 16,000
	// packets of 1,200 bytes (recordRate), of which every second packet has the end of one message and the beginning of
	// the next. At 10 µs per chunk, one remote peer can use a quarter of a core.
	chunkRate, chunkBurst = 24_000, 6144
	// sourceChunkRate and sourceChunkBurst limit the transfer chunks of all remote peers at one address, so that many
	// sessions cannot use a core each.
	sourceChunkRate, sourceChunkBurst = 28_000, 8192
	// controlRate and controlBurst limit all other chunks. SCTP answers most of them with one packet each, which it
	// queues without a bound: a packet of 1,200 bytes has room for 148 HEARTBEATs. A correct sender sends a few when it
	// begins, one HEARTBEAT in 30 s, and a RECONFIG for each channel that it closes.
	controlRate, controlBurst = 100, 256
	// maxLostControl is the number of control chunks above the limit after which the association ends. Decrypting
	// packets of such chunks takes 18 µs each, and a correct sender does not continue.
	maxLostControl = 4 * controlBurst
)

// SourceRate limits the transfer chunks of all remote peers at one address.
var SourceRate = ratelimit.Rate{PerSecond: sourceChunkRate, Burst: sourceChunkBurst}

// errPanicked is the error that SCTP receives from a call that panicked.
var errPanicked = errors.New("panic in a goroutine of the peer")

var errSCTP = errors.New("SCTP packet that no correct sender makes")

// dataConn is the DTLS connection that SCTP reads. SCTP processes a packet before it reads the next one, so the
// acknowledgements in a packet are known at the next read. dataConn belongs to SCTP's reading goroutine.
type dataConn struct {
	net.Conn
	sink Sink
	// try calls a function and reports whether it returned. If the function panics, the peer ends.
	try             func(func()) bool
	begun           bool
	chunks, control ratelimit.Bucket
	// lostControl counts the control chunks above the limit.
	lostControl int
	// shared limits the rate of chunks of all remote peers at one address.
	shared *ratelimit.SharedSources
	// repeater repeats acknowledgements.
	repeater *repeater
}

func newDataConn(conn net.Conn, sink Sink, try func(func()) bool, shared *ratelimit.SharedSources) *dataConn {
	return &dataConn{
		Conn: conn, sink: sink, try: try, shared: shared, repeater: &repeater{conn: conn, try: try},
		chunks: ratelimit.NewBucket(chunkRate, chunkBurst), control: ratelimit.NewBucket(controlRate, controlBurst),
	}
}

// Write implements net.Conn.
func (c *dataConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil {
		c.repeater.sent(b)
	}
	return n, err
}

// Read implements net.Conn. Packets above a limit are lost, as on the network. A packet that no correct sender makes,
// more than maxLostControl lost chunks, or a panic ends the association.
func (c *dataConn) Read(b []byte) (n int, err error) {
	if !c.try(func() { n, err = c.read(b) }) {
		return 0, errPanicked
	}
	return n, err
}

func (c *dataConn) read(b []byte) (int, error) {
	if c.begun {
		c.sink.Acknowledged(time.Now())
	}
	c.begun = true
	for {
		n, err := c.Conn.Read(b)
		if err != nil {
			return n, err
		}
		count, err := countChunks(b[:n])
		if err != nil {
			return 0, err
		}
		now := time.Now()
		if !c.control.TakeAll(count.control, now) {
			if c.lostControl += count.control; c.lostControl > maxLostControl {
				return 0, errSCTP
			}
			continue
		}
		if c.chunks.TakeAll(count.transfer, now) &&
			(count.transfer == 0 || c.shared.TakeAll(addressOf(c.RemoteAddr()), count.transfer, now)) {
			acknowledgeAtOnce(b[:n])
			return n, nil
		}
	}
}

// addressOf returns the address of a UDP or TCP address, and an invalid address for other types.
func addressOf(address net.Addr) netip.Addr {
	switch address := address.(type) {
	case *net.UDPAddr:
		return address.AddrPort().Addr().Unmap()
	case *net.TCPAddr:
		return address.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// chunkCount is the number of a packet's transfer chunks and of its other chunks.
type chunkCount struct{ transfer, control int }

// countChunks counts the chunks of a packet. Counting ends at a chunk with a wrong length: SCTP drops such a packet.
func countChunks(packet []byte) (count chunkCount, err error) {
	if len(packet) < sctpHeader {
		return count, nil
	}
	for rest := packet[sctpHeader:]; len(rest) >= chunkHeader; {
		kind, size := rest[0], int(binary.BigEndian.Uint16(rest[2:]))
		if size < chunkHeader || size > len(rest) {
			return count, nil
		}
		switch kind {
		case chunkData:
			// RFC 9260 section 6.2: a DATA chunk without user data aborts the association.
			if size <= dataHeader {
				return count, errSCTP
			}
			count.transfer++
		case chunkSACK, chunkForwardTSN:
			count.transfer++
		default:
			count.control++
		}
		// Chunks are padded to a multiple of four bytes.
		rest = rest[min((size+3)&^3, len(rest)):]
	}
	return count, nil
}
