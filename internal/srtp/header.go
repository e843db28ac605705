package srtp

import "encoding/binary"

const (
	// fixedHeaderSize is the size of an RTP header without CSRCs and extension (RFC 3550 section 5.1).
	fixedHeaderSize = 12
	// rtcpHeaderSize is the unencrypted start of an RTCP packet in SRTCP: the header and the sender's SSRC (RFC 3711
	// section 3.4).
	rtcpHeaderSize = 8
)

// headerSize returns the size of the header of an RTP packet, CSRCs and extension included: the part that is
// authenticated, but not encrypted. headerSize returns 0 if the packet has no complete header of version 2.
func headerSize(packet []byte) int {
	if len(packet) < fixedHeaderSize || packet[0]>>6 != 2 {
		return 0
	}
	size := fixedHeaderSize + 4*int(packet[0]&0x0f)
	if packet[0]&0x10 != 0 {
		if len(packet) < size+4 {
			return 0
		}
		size += 4 + 4*int(binary.BigEndian.Uint16(packet[size+2:]))
	}
	if len(packet) < size {
		return 0
	}
	return size
}
