package srtp

import "encoding/binary"

const (
	// fixedHeaderSize is the size of an RTP header without CSRCs and extension (RFC 3550 section 5.1).
	fixedHeaderSize = 12
	// rtcpHeaderSize is the part of an RTCP packet that SRTCP leaves readable: the header and the sender's SSRC (RFC 3711 section 3.4).
	rtcpHeaderSize = 8
)

// headerSize is the size of the header that an RTP packet begins with, CSRCs and extension included: what is authenticated, but not encrypted. It is
// 0 where there is no whole header of version 2.
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
