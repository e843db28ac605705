// Package stream carries the frames of one producer to one consumer without a server: as payload v1 in RTP packets that
// are numbered over the whole connection, paced, reported, repaired, and sent no faster than the way carries them.
//
// A Sender and a Receiver are pure: they are stepped with an explicit now, and know neither sockets nor clocks. Each
// belongs to one goroutine, or to the lock of its owner.
package stream

import (
	"encoding/binary"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/payload"
)

// ClockRate is that of RTP timestamps, in Hz.
const ClockRate = 90000

// PacketBytes is what each packet takes on the wire beside what it carries of a frame, payload.FragmentSize at most.
const PacketBytes = congestion.PacketOverhead + payload.DescriptorSize

// Wire tells the two streams of a connection apart: media, and what is sent of it again.
type Wire struct {
	SSRC, RetransmissionSSRC               uint32
	PayloadType, RetransmissionPayloadType uint8
	// Extension is the identifier of the header extension with the number of a packet among all.
	Extension uint8
}

// IsRTCP tells whether a datagram of a socket that carries both is RTCP (RFC 5761 section 4).
func IsRTCP(datagram []byte) bool {
	return len(datagram) >= 4 && datagram[0]>>6 == 2 && datagram[1] >= 192 && datagram[1] <= 223
}

// Compound cuts an RTCP compound into its packets. What is cut off, or malformed, is left out.
func Compound(datagram []byte) (packets [][]byte) {
	for IsRTCP(datagram) {
		size := 4 * (int(binary.BigEndian.Uint16(datagram[2:])) + 1)
		if size > len(datagram) {
			break
		}
		packets = append(packets, datagram[:size])
		datagram = datagram[size:]
	}
	return packets
}
