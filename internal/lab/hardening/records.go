package hardening

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
)

// DTLS 1.2 as RFC 6347 has it: types of records and the lengths of headers.
const (
	recordCipherSpec  = 20
	recordAlert       = 21
	recordHandshake   = 22
	recordApplication = 23
	recordHeader      = 13
	handshakeHeader   = 12
	// certificateMessage is the type of a message that may be long.
	certificateMessage = 11
)

// record is a DTLS record of epoch 0, which nothing protects.
func record(kind byte, number uint64, body []byte) []byte {
	r := make([]byte, recordHeader, recordHeader+len(body))
	r[0], r[1], r[2] = kind, 0xfe, 0xfd
	binary.BigEndian.PutUint64(r[3:], number&(1<<48-1))
	binary.BigEndian.PutUint16(r[11:], uint16(len(body)))
	return append(r, body...)
}

// fragment is a fragment of a handshake message: length is that of the message, offset and body the fragment's.
func fragment(kind byte, sequence uint16, length, offset uint32, body []byte) []byte {
	f := append(make([]byte, 0, handshakeHeader+len(body)), kind)
	f = appendThree(f, length)
	f = binary.BigEndian.AppendUint16(f, sequence)
	f = appendThree(f, offset)
	f = appendThree(f, uint32(len(body)))
	return append(f, body...)
}

// appendThree appends a number of three bytes.
func appendThree(b []byte, v uint32) []byte { return append(b, byte(v>>16), byte(v>>8), byte(v)) }

// emptyBeyondStart is a fragment without content at offset 5 of a message of length 0: 25 bytes.
func emptyBeyondStart(sequence uint16) []byte {
	return record(recordHandshake, 1+uint64(sequence), fragment(16, sequence, 0, 5, nil))
}

// closeNotify is the alert that ends a connection, with the highest record number of a spoofer who knows no other.
func closeNotify() []byte { return record(recordAlert, 0xffffffff, []byte{1, 0}) }

// mutator makes records out of real ones.
type mutator struct {
	random *rand.Rand
	corpus [][]byte
	// number is that of the next record. Records with numbers far behind others are dropped as replays, unread.
	number uint64
}

// longest is what a mutated record has room for: a datagram of Ethernet.
const longest = 1400

// next writes a mutated record and returns its length.
func (m *mutator) next(buffer []byte) int {
	r := append(buffer[:0], m.corpus[m.random.IntN(len(m.corpus))]...)
	m.number++
	copy(r[5:11], binary.BigEndian.AppendUint64(nil, m.number)[2:])
	for range 1 + m.random.IntN(4) {
		r = m.mutate(r)
	}
	return len(r)
}

func (m *mutator) mutate(r []byte) []byte {
	if len(r) == 0 {
		return append(r, recordHandshake)
	}
	at := m.random.IntN(len(r))
	extremes := []byte{0, 1, 5, 127, 128, 254, 255}
	switch m.random.IntN(8) {
	case 0:
		r[at] ^= 1 << m.random.IntN(8)
	case 1:
		r[at] = extremes[m.random.IntN(len(extremes))]
	case 2:
		r = r[:at]
	case 3:
		for range m.random.IntN(64) {
			r = append(r, byte(m.random.Uint32()))
		}
	case 4:
		// A number near the present one may be new, late or a replay.
		if len(r) >= recordHeader {
			copy(r[5:11], binary.BigEndian.AppendUint64(nil, m.number+uint64(m.random.IntN(100))-min(m.number, 50))[2:])
		}
	case 5:
		m.mutateHandshake(r)
	case 6:
		r = append(r, m.corpus[m.random.IntN(len(m.corpus))]...)
	default:
		if len(r) >= recordHeader {
			binary.BigEndian.PutUint16(r[11:], uint16(len(r)-recordHeader))
		}
	}
	return r[:min(len(r), longest)]
}

// mutateHandshake changes a field of the handshake header.
func (m *mutator) mutateHandshake(r []byte) {
	if len(r) < recordHeader+handshakeHeader {
		return
	}
	h := r[recordHeader:]
	values := []uint32{0, 1, 5, uint32(len(h) - handshakeHeader), 1<<24 - 1, m.random.Uint32()}
	value := binary.BigEndian.AppendUint32(nil, values[m.random.IntN(len(values))])[1:]
	switch m.random.IntN(4) {
	case 0:
		copy(h[1:], value)
	case 1:
		binary.BigEndian.PutUint16(h[4:], uint16(m.random.IntN(12)))
	case 2:
		copy(h[6:], value)
	default:
		copy(h[9:], value)
	}
}

// synthetic are records that no handshake sends, to begin with.
func synthetic() [][]byte {
	return [][]byte{
		emptyBeyondStart(0), closeNotify(), record(recordCipherSpec, 9, []byte{1}), record(recordApplication, 10, []byte("hello")),
		record(recordAlert, 11, []byte{2, 40}), record(recordHandshake, 12, fragment(certificateMessage, 3, 4000, 1000, make([]byte, 200))),
	}
}

// castagnoli is SCTP's checksum (RFC 9260 appendix A).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// sctpPort is that of data channels (RFC 8832).
	sctpPort = 5000
	// Flags of DATA (RFC 9260 section 3.3.1).
	flagEnd, flagBegin, flagUnordered = 1, 2, 4
	// openMessage is DCEP's payload protocol identifier (RFC 8832 section 8.1).
	openMessage = 50
)

// sctpPacket is a packet with chunks.
func sctpPacket(tag uint32, chunks []byte) []byte {
	p := make([]byte, 12, 12+len(chunks))
	binary.BigEndian.PutUint16(p, sctpPort)
	binary.BigEndian.PutUint16(p[2:], sctpPort)
	binary.BigEndian.PutUint32(p[4:], tag)
	p = append(p, chunks...)
	binary.LittleEndian.PutUint32(p[8:], crc32.Checksum(p, castagnoli))
	return p
}

// appendData appends a DATA chunk.
func appendData(chunks []byte, flags byte, tsn uint32, stream uint16, protocol uint32, body []byte) []byte {
	chunks = append(chunks, 0, flags)
	chunks = binary.BigEndian.AppendUint16(chunks, uint16(16+len(body)))
	chunks = binary.BigEndian.AppendUint32(chunks, tsn)
	chunks = binary.BigEndian.AppendUint16(chunks, stream)
	chunks = binary.BigEndian.AppendUint16(chunks, 0)
	chunks = binary.BigEndian.AppendUint32(chunks, protocol)
	chunks = append(chunks, body...)
	for len(chunks)%4 != 0 {
		chunks = append(chunks, 0)
	}
	return chunks
}

// channelOpen is a DATA_CHANNEL_OPEN message (RFC 8832 section 5.1) with a label.
func channelOpen(label string) []byte {
	m := make([]byte, 12, 12+len(label))
	m[0] = 3
	binary.BigEndian.PutUint16(m[8:], uint16(len(label)))
	return append(m, label...)
}
