package intruder

import (
	"encoding/binary"
	"math/rand/v2"
)

// DTLS 1.2 (RFC 6347): content types of records and lengths of headers.
const (
	CipherSpec      = 20
	Alert           = 21
	Handshake       = 22
	ApplicationData = 23
	recordHeader    = 13
	handshakeHeader = 12
	// CertificateMessage is the type of a handshake message that may be long.
	CertificateMessage = 11
)

// Record returns an unprotected DTLS record (epoch 0).
func Record(kind byte, number uint64, body []byte) []byte {
	r := make([]byte, recordHeader, recordHeader+len(body))
	r[0], r[1], r[2] = kind, 0xfe, 0xfd
	binary.BigEndian.PutUint64(r[3:], number&(1<<48-1))
	binary.BigEndian.PutUint16(r[11:], uint16(len(body)))
	return append(r, body...)
}

// Fragment returns a fragment of a handshake message. length is the length of the message. offset and body are the
// fragment's.
func Fragment(kind byte, sequence uint16, length, offset uint32, body []byte) []byte {
	f := append(make([]byte, 0, handshakeHeader+len(body)), kind)
	f = appendThree(f, length)
	f = binary.BigEndian.AppendUint16(f, sequence)
	f = appendThree(f, offset)
	f = appendThree(f, uint32(len(body)))
	return append(f, body...)
}

// appendThree appends a number of three bytes.
func appendThree(b []byte, v uint32) []byte { return append(b, byte(v>>16), byte(v>>8), byte(v)) }

// EmptyBeyondStart returns an empty fragment at offset 5 of a message of length 0: 25 bytes.
func EmptyBeyondStart(sequence uint16) []byte {
	return Record(Handshake, 1+uint64(sequence), Fragment(16, sequence, 0, 5, nil))
}

// CloseNotify returns the alert that ends a connection. The record number is the highest that a spoofer would choose,
// since the spoofer does not know the present number.
func CloseNotify() []byte { return Record(Alert, 0xffffffff, []byte{1, 0}) }

// Mutator makes records by mutating real ones.
type Mutator struct {
	random *rand.Rand
	// corpus are the real records, and the synthetic ones of NewMutator.
	corpus [][]byte
	// number is the number of the next record. Records with numbers far behind others are dropped unread, as replays.
	number uint64
}

// NewMutator returns a mutator whose corpus is Synthetic. The seed determines all random choices.
func NewMutator(seed uint64) *Mutator {
	return &Mutator{random: rand.New(rand.NewPCG(seed, seed)), corpus: Synthetic()}
}

// Learn adds a copy of a real record.
func (m *Mutator) Learn(record []byte) { m.corpus = append(m.corpus, append([]byte(nil), record...)) }

// longest bounds a mutated record: the payload of an Ethernet frame.
const longest = 1400

// Next writes a mutated record into a buffer of 1,400 bytes or more and returns its length.
func (m *Mutator) Next(buffer []byte) int {
	r := append(buffer[:0], m.corpus[m.random.IntN(len(m.corpus))]...)
	m.number++
	copy(r[5:11], binary.BigEndian.AppendUint64(nil, m.number)[2:])
	for range 1 + m.random.IntN(4) {
		r = m.mutate(r)
	}
	return len(r)
}

func (m *Mutator) mutate(r []byte) []byte {
	if len(r) == 0 {
		return append(r, Handshake)
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
func (m *Mutator) mutateHandshake(r []byte) {
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

// Synthetic returns records that no handshake sends.
func Synthetic() [][]byte {
	return [][]byte{
		EmptyBeyondStart(0), CloseNotify(), Record(CipherSpec, 9, []byte{1}), Record(Alert, 10, []byte{2, 40}),
		Record(ApplicationData, 11, []byte("hello")),
		Record(Handshake, 12, Fragment(CertificateMessage, 3, 4000, 1000, make([]byte, 200))),
	}
}
