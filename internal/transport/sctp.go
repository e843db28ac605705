package transport

import (
	"encoding/binary"
	"errors"
	"net"
	"time"
)

// Sizes and values of SCTP (RFC 9260 sections 3.1 to 3.3.1).
const (
	sctpHeader  = 12
	chunkHeader = 4
	dataHeader  = 16
	chunkData   = 0
)

const (
	// maxFragments is how many fragments of incomplete messages SCTP keeps for each stream, before it ends the association.
	// The receive window of 1 MiB holds 912 fragments of 1,150 bytes, and browsers begin each message in what is
	// left of the packet before. SCTP sorts and searches all of them for each chunk, which takes some 10 µs at this bound.
	maxFragments = 1024
	// chunkRate and chunkBurst bound the DATA chunks that are taken, in chunks per second: 16,000 packets of 1,200 bytes
	// (recordRate), every second of which has the end of one message and the beginning of the next. With 10 µs each, one
	// remote peer can take a quarter of a core.
	chunkRate, chunkBurst = 24_000, 6144
)

var errSCTP = errors.New("SCTP packet that no correct sender makes")

// dataConn is the DTLS connection as SCTP sees it. SCTP reads the next packet once it has taken the one before, so what
// that one has acknowledged is known by then. It belongs to SCTP's reading goroutine.
type dataConn struct {
	net.Conn
	sink   DataSink
	begun  bool
	chunks bucket
}

func newDataConn(conn net.Conn, sink DataSink) *dataConn {
	return &dataConn{Conn: conn, sink: sink, chunks: newBucket(chunkRate, chunkBurst)}
}

// Read implements net.Conn. Packets with more chunks than are taken are lost, as on the network. A packet that no correct
// sender makes ends the association.
func (c *dataConn) Read(b []byte) (int, error) {
	if c.begun {
		c.sink.Acknowledged(time.Now())
	}
	c.begun = true
	for {
		n, err := c.Conn.Read(b)
		if err != nil {
			return n, err
		}
		chunks, err := dataChunks(b[:n])
		if err != nil {
			return 0, err
		}
		if c.takes(chunks, time.Now()) {
			return n, nil
		}
	}
}

// takes reports whether so many DATA chunks are taken.
func (c *dataConn) takes(chunks int, now time.Time) bool {
	for range chunks {
		if !c.chunks.take(now) {
			return false
		}
	}
	return true
}

// dataChunks counts the DATA chunks of a packet. Chunks after one whose length is wrong are not counted: SCTP drops such
// a packet.
func dataChunks(packet []byte) (count int, err error) {
	if len(packet) < sctpHeader {
		return 0, nil
	}
	for rest := packet[sctpHeader:]; len(rest) >= chunkHeader; {
		kind, size := rest[0], int(binary.BigEndian.Uint16(rest[2:]))
		if size < chunkHeader || size > len(rest) {
			return count, nil
		}
		if kind == chunkData {
			count++
			// RFC 9260 section 6.2: a DATA chunk without user data aborts the association.
			if size <= dataHeader {
				return count, errSCTP
			}
		}
		// Chunks are padded to a multiple of four bytes.
		rest = rest[min((size+3)&^3, len(rest)):]
	}
	return count, nil
}
