// Package stream carries the frames of one producer to one consumer without a server: as payload v1 in RTP packets,
// with pacing, reports of arrivals, retransmission and congestion control.
//
// A Sender and a Receiver are pure: all methods take the time, and they use neither sockets nor clocks. Each is owned
// by one goroutine or guarded by its owner's lock.
package stream

import (
	"encoding/binary"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/payload"
)

// ClockRate is the clock rate of RTP timestamps, in Hz.
const ClockRate = 90000

// PacketBytes is the overhead of each packet on the wire, beyond its part of a frame, which is at most
// payload.FragmentSize.
const PacketBytes = congestion.PacketOverhead + payload.DescriptorSize

// Wire identifies the two streams of a connection: media and retransmissions.
type Wire struct {
	SSRC, RetransmissionSSRC               uint32
	PayloadType, RetransmissionPayloadType uint8
	// Extension is the identifier of the header extension with the transport-wide sequence number, 0 for none.
	Extension uint8
	// ByStream is set if the receiver reports arrivals by SSRC and sequence number (RFC 8888), and not by
	// transport-wide number.
	ByStream bool
}

// IsRTCP reports whether a datagram of a socket with RTP and RTCP is RTCP (RFC 5761 section 4).
func IsRTCP(datagram []byte) bool {
	return len(datagram) >= 4 && datagram[0]>>6 == 2 && datagram[1] >= 192 && datagram[1] <= 223
}

// Compound splits an RTCP compound packet into its packets. A truncated or malformed rest is omitted.
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
