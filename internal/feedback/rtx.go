package feedback

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/pion/rtp"
)

// Errors of retransmissions. The wrapping error has the found and the expected value.
var (
	// ErrRTX is the sentinel of a malformed retransmission, or one without an original: browsers send empty ones as
	// padding.
	ErrRTX = errors.New("malformed retransmission")
	// ErrBuffer is the sentinel of a destination buffer that is too short.
	ErrBuffer = errors.New("buffer too short")
)

// originalSize is the size of the original sequence number at the start of a retransmission's payload (RFC 4588 section
// 4).
const originalSize = 2

// RTX is the sending side of one retransmission stream. Its sequence numbers count retransmissions only, so that the
// SRTP index at the receiver has no gaps, however many packets lie between two retransmissions.
type RTX struct {
	// SSRC and PayloadType are those of the retransmission stream.
	SSRC        uint32
	PayloadType uint8
	// Next is the sequence number of the next retransmission.
	Next uint16
}

// Pack converts the header of an original packet to that of its retransmission, and writes the retransmission's payload
// to dst, which must be at least two bytes longer than payload. The timestamp, the marker and the extensions do not
// change.
func (r *RTX) Pack(dst []byte, h *rtp.Header, payload []byte) ([]byte, error) {
	size := originalSize + len(payload)
	if len(dst) < size {
		return nil, fmt.Errorf("%w: retransmission takes %d bytes, got %d", ErrBuffer, size, len(dst))
	}
	// The payload is copied first: it may be a part of dst.
	copy(dst[originalSize:], payload)
	binary.BigEndian.PutUint16(dst, h.SequenceNumber)
	h.SSRC, h.PayloadType, h.SequenceNumber = r.SSRC, r.PayloadType, r.Next
	h.Padding, h.PaddingSize = false, 0
	r.Next++
	return dst[:size], nil
}

// Answerable reports whether a request that arrives now for a packet first sent at sent can be about its loss. A
// request arrives at least a round trip after the missing packet was sent. A request within three quarters of a round
// trip, which leaves room for jitter, was sent before the packet could arrive. This happens for every packet that a
// server had to request itself: its receivers miss the packet at the same time, and without this rule each such repair
// would be sent twice to each of them.
func Answerable(sent, now time.Time, rtt time.Duration) bool { return now.Sub(sent) >= rtt*3/4 }

// UnpackRTX writes the original of a retransmission, a whole RTP packet with the given SSRC and payload type, to dst,
// and returns its size, which is at least two bytes less than that of packet. Padding is removed. dst may be packet
// itself. Errors wrap ErrRTX or ErrBuffer.
func UnpackRTX(dst, packet []byte, ssrc uint32, payloadType uint8) (int, error) {
	header, end, err := bounds(packet)
	if err != nil {
		return 0, err
	}
	if end-header < originalSize {
		return 0, fmt.Errorf("%w: payload has %d bytes, expected at least %d", ErrRTX, end-header, originalSize)
	}
	size := end - originalSize
	if len(dst) < size {
		return 0, fmt.Errorf("%w: original takes %d bytes, got %d", ErrBuffer, size, len(dst))
	}
	original := binary.BigEndian.Uint16(packet[header:])
	copy(dst, packet[:header])
	copy(dst[header:], packet[header+originalSize:end])
	dst[0] &^= 1 << 5
	dst[1] = dst[1]&0x80 | payloadType&0x7f
	binary.BigEndian.PutUint16(dst[2:], original)
	binary.BigEndian.PutUint32(dst[8:], ssrc)
	return size, nil
}

// bounds returns the start and the end of the payload of an RTP packet (RFC 3550 section 5.1 and 5.3.1).
func bounds(packet []byte) (header, end int, err error) {
	const fixed = 12
	if len(packet) < fixed {
		return 0, 0, fmt.Errorf("%w: packet has %d bytes, expected at least %d", ErrRTX, len(packet), fixed)
	}
	if version := packet[0] >> 6; version != 2 {
		return 0, 0, fmt.Errorf("%w: RTP version is %d, expected 2", ErrRTX, version)
	}
	header = fixed + 4*int(packet[0]&0x0f)
	if packet[0]&(1<<4) != 0 {
		if len(packet) < header+4 {
			return 0, 0, fmt.Errorf("%w: %d bytes end within the header extension", ErrRTX, len(packet))
		}
		header += 4 + 4*int(binary.BigEndian.Uint16(packet[header+2:]))
	}
	if end = len(packet); end < header {
		return 0, 0, fmt.Errorf("%w: packet has %d bytes, its header %d", ErrRTX, end, header)
	}
	if packet[0]&(1<<5) != 0 {
		padding := int(packet[end-1])
		if padding == 0 || padding > end-header {
			return 0, 0, fmt.Errorf("%w: %d bytes of padding in %d bytes of payload", ErrRTX, padding, end-header)
		}
		end -= padding
	}
	return header, end, nil
}
