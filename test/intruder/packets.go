package intruder

import (
	"encoding/binary"
	"hash/crc32"
)

// castagnoli is the polynomial of SCTP's checksum (RFC 9260 appendix A).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// sctpPort is the SCTP port of data channels.
	sctpPort = 5000
	// Flags of DATA (RFC 9260 section 3.3.1).
	flagEnd, flagBegin, flagUnordered = 1, 2, 4
	// openMessage is the payload protocol identifier of DCEP (RFC 8832 section 8.1), binaryMessage that of binary data
	// (RFC 8831 section 8).
	openMessage   = 50
	binaryMessage = 53
)

// sctpPacket returns a packet with the given chunks.
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

// ChannelOpen returns a DATA_CHANNEL_OPEN message (RFC 8832 section 5.1) with a label.
func ChannelOpen(label string) []byte {
	m := make([]byte, 12, 12+len(label))
	m[0] = 3
	binary.BigEndian.PutUint16(m[8:], uint16(len(label)))
	return append(m, label...)
}

// Packets describes SCTP packets of one kind.
type Packets struct {
	// Chunks is the number of chunks per packet. Numbered is the number of DATA chunks, which have TSNs.
	Chunks, Numbered uint32
	append           func(chunks []byte, tsn uint32) []byte
}

var (
	// EmptyFragments are middle fragments without content, 71 of 16 bytes in a packet of 1,148 bytes.
	EmptyFragments = Packets{71, 71, func(chunks []byte, tsn uint32) []byte {
		return appendData(chunks, flagUnordered, tsn, 1, openMessage, nil)
	}}
	// OpenedChannels open one channel each on successive streams, 36 chunks of 32 bytes in a packet of 1,164 bytes.
	OpenedChannels = Packets{36, 36, func(chunks []byte, tsn uint32) []byte {
		return appendData(chunks, flagUnordered|flagBegin|flagEnd, tsn, uint16(2*tsn), openMessage, ChannelOpen("body"))
	}}
	// Heartbeats request one answer each (RFC 9260 section 8.3), 144 chunks of 8 bytes in a packet of 1,164 bytes.
	Heartbeats = Packets{144, 0, func(chunks []byte, _ uint32) []byte {
		// A HEARTBEAT whose Heartbeat Info parameter is empty.
		return append(chunks, 4, 0, 0, 8, 0, 1, 0, 4)
	}}
)

// Packet returns a packet with a verification tag. The TSNs of its DATA chunks begin at tsn.
func (k *Packets) Packet(tag, tsn uint32) []byte {
	var chunks []byte
	for n := range k.Chunks {
		chunks = k.append(chunks, tsn+n)
	}
	return sctpPacket(tag, chunks)
}

// Garbage returns a packet with one chunk of arbitrary type, flags and content.
func Garbage(tag uint32, kind, flags byte, body []byte) []byte {
	chunk := binary.BigEndian.AppendUint16([]byte{kind, flags}, uint16(4+len(body)))
	return sctpPacket(tag, append(chunk, body...))
}

// Channel returns a packet that opens a channel on a stream with an arbitrary message, and sends an arbitrary message
// on the channel.
func Channel(tag, tsn uint32, stream uint16, open, message []byte) []byte {
	const whole = flagUnordered | flagBegin | flagEnd
	chunks := appendData(nil, whole, tsn, stream, openMessage, open)
	return sctpPacket(tag, appendData(chunks, whole, tsn+1, stream, binaryMessage, message))
}
