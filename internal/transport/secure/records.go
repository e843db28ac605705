// Package secure makes the DTLS connection of a peer connection, and derives the SRTP contexts from it (RFC 5764).
//
// Records holds the records that DTLS has not read yet. Its methods are safe for any goroutine.
package secure

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/transport/v5/packetio"

	"github.com/volsfu/volsfu/internal/transport/datachannels"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// Sizes and content types of DTLS 1.2 records (RFC 6347 section 4.1) and handshake messages (section 4.2.2).
const (
	recordHeader    = 13
	handshakeHeader = 12

	contentChangeCipherSpec = 20
	contentAlert            = 21
	contentHandshake        = 22
	contentApplicationData  = 23

	alertBytes = 2
)

const (
	// maxHandshake is the longest accepted handshake message. The longest message in use carries a certificate chain.
	// In WebRTC the chain is one certificate of some 1 kB.
	maxHandshake = 16 << 10
	// maxHandshakeNumber bounds message_seq. A handshake with client certificates has seven messages of each side, and
	// two more if the hello is repeated.
	maxHandshakeNumber = 32
	// maxPlaintext is the number of bytes of unprotected records that one connection accepts: 20 handshakes of 4 kB,
	// with as many repetitions of each flight.
	maxPlaintext = 128 << 10
)

// recordFilter removes DTLS records that no correct peer sends, before the DTLS library reads the datagram. Every host
// that knows the peer's address can forge unprotected records. After the handshake they have no meaning. recordFilter
// is pure and not safe for concurrent use.
type recordFilter struct {
	// finished is set after the handshake.
	finished bool
	// plaintext counts the bytes of accepted unprotected records.
	plaintext int
}

// filter removes the rejected records from the datagram and returns the remaining ones, in the datagram's memory. From
// the first record with a wrong length on, the rest of the datagram is dropped.
func (f *recordFilter) filter(datagram []byte) []byte {
	kept := datagram[:0]
	for rest := datagram; len(rest) >= recordHeader; {
		size := recordHeader + int(binary.BigEndian.Uint16(rest[11:]))
		if size > len(rest) {
			break
		}
		if record := rest[:size]; f.takes(record) {
			// In place: the kept records take at most the space of the records read so far.
			kept = append(kept, record...)
		}
		rest = rest[size:]
	}
	return kept
}

// takes reports whether a record is accepted.
func (f *recordFilter) takes(record []byte) bool {
	content, epoch, body := record[0], binary.BigEndian.Uint16(record[3:]), record[recordHeader:]
	if epoch > 0 {
		// Only the holder of the keys can check the content.
		return content >= contentChangeCipherSpec && content <= contentApplicationData
	}
	// A client repeats its last flight if the server's answer is lost. The server recognises the repetition by the
	// Finished message, which is protected.
	if f.finished || f.plaintext+len(record) > maxPlaintext {
		return false
	}
	f.plaintext += len(record)
	switch content {
	case contentChangeCipherSpec:
		return len(body) == 1
	case contentAlert:
		return len(body) == alertBytes
	case contentHandshake:
		return areFragments(body)
	}
	return false
}

// areFragments reports whether the body of a record consists of fragments of handshake messages, each inside its
// message.
func areFragments(body []byte) bool {
	if len(body) == 0 {
		return false
	}
	for len(body) > 0 {
		if len(body) < handshakeHeader {
			return false
		}
		total, number := uint24(body[1:]), binary.BigEndian.Uint16(body[4:])
		offset, length := uint24(body[6:]), uint24(body[9:])
		empty := length == 0 && total > 0
		if empty || total > maxHandshake || offset+length > total || number >= maxHandshakeNumber ||
			handshakeHeader+length > len(body) {
			return false
		}
		body = body[handshakeHeader+length:]
	}
	return true
}

func uint24(b []byte) int { return int(b[0])<<16 | int(b[1])<<8 | int(b[2]) }

// IsRecord reports whether a datagram holds DTLS records, by its first byte (RFC 7983).
func IsRecord(datagram []byte) bool {
	return len(datagram) > 0 && datagram[0] >= 20 && datagram[0] <= 63
}

// Records are the DTLS records that a peer connection sends and receives. Records implements net.PacketConn for the
// DTLS library.
type Records struct {
	conn Sender
	// in has the records that DTLS has not read. Close replaces it.
	in atomic.Pointer[packetio.Buffer]

	mu     sync.Mutex
	filter recordFilter
	rate   ratelimit.Bucket
}

const (
	// recordBytes bounds the bytes that DTLS has not read yet. A handshake has some 4 kB. Data channels may send a
	// receive window ahead.
	recordBytes = 2 * datachannels.ReceiveWindow
	// recordRate and recordBurst limit the datagrams with records of a remote peer, per second. Data channels of
	// browsers reach 155 Mbit/s, which is 16,000 packets of 1,200 bytes.
	recordRate, recordBurst = 16_000, 4096
)

// SourceRate limits the datagrams with DTLS records of all peers at one address: four times the limit of one peer.
// Decrypting all of them takes some 20 % of a core.
var SourceRate = ratelimit.Rate{PerSecond: 4 * recordRate, Burst: 4 * recordBurst}

// Sender sends datagrams to the remote peer: a connection of ICE, or a lane. The addresses are nil while unknown.
type Sender interface {
	Write([]byte) (int, error)
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// NewRecords returns the records of a connection.
func NewRecords(conn Sender) *Records {
	in := packetio.NewBuffer()
	in.SetLimitSize(recordBytes)
	c := &Records{conn: conn, rate: ratelimit.NewBucket(recordRate, recordBurst)}
	c.in.Store(in)
	return c
}

// Admits reports whether the remote peer may send one more datagram of records.
func (c *Records) Admits(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate.Take(now)
}

// Write passes a datagram of records to DTLS. Records that DTLS does not read in time are lost, as on the network.
// Write overwrites the datagram.
func (c *Records) Write(datagram []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if records := c.filter.filter(datagram); len(records) > 0 {
		_, _ = c.in.Load().Write(records, nil)
	}
}

// Finish records the end of the handshake.
func (c *Records) Finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filter.finished = true
}

// ReadFrom implements net.PacketConn.
func (c *Records) ReadFrom(b []byte) (int, net.Addr, error) {
	n, _, err := c.in.Load().Read(b, nil)
	return n, c.RemoteAddr(), err
}

// WriteTo implements net.PacketConn. Records are sent through ICE. If ICE has no pair, for example during a restart, a
// record is lost, as on the network. An error would end all data channels of SCTP.
func (c *Records) WriteTo(b []byte, _ net.Addr) (int, error) {
	_, _ = c.conn.Write(b)
	return len(b), nil
}

// RemoteAddr returns the remote address of ICE.
func (c *Records) RemoteAddr() net.Addr {
	if address := c.conn.RemoteAddr(); address != nil {
		return address
	}
	return &net.UDPAddr{}
}

// LocalAddr implements net.PacketConn.
func (c *Records) LocalAddr() net.Addr {
	if address := c.conn.LocalAddr(); address != nil {
		return address
	}
	return &net.UDPAddr{}
}

// Close implements net.PacketConn. The peer closes ICE. The memory of records that were not read is released, up to
// recordBytes: a participant stays in its room for a while after its connection has ended, and may go on sending.
func (c *Records) Close() error {
	closed := packetio.NewBuffer()
	return errors.Join(closed.Close(), c.in.Swap(closed).Close())
}

// SetDeadline implements net.PacketConn, as do the two methods below. Writing never waits.
func (c *Records) SetDeadline(t time.Time) error     { return c.in.Load().SetReadDeadline(t) }
func (c *Records) SetReadDeadline(t time.Time) error { return c.in.Load().SetReadDeadline(t) }
func (c *Records) SetWriteDeadline(time.Time) error  { return nil }

// Types of handshake messages (RFC 5246 section 7.4).
const (
	clientHello = 1
	serverHello = 2
)

// IsClientHello reports whether a datagram begins with the first handshake message of a client.
func IsClientHello(datagram []byte) bool { return startsWith(datagram, clientHello) }

// IsServerHello reports whether a datagram begins with a ServerHello. A HelloVerifyRequest, which asks the client to
// prove its address (RFC 6347 section 4.2.1), is none.
func IsServerHello(datagram []byte) bool { return startsWith(datagram, serverHello) }

// startsWith reports whether a datagram begins with an unprotected handshake message of a type.
func startsWith(datagram []byte, message byte) bool {
	return len(datagram) >= recordHeader+handshakeHeader && datagram[0] == contentHandshake &&
		datagram[recordHeader] == message
}
