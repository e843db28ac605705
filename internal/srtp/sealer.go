package srtp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	pion "github.com/pion/srtp/v3"
)

// Errors of sealing. The wrapping error describes the packet.
var (
	// ErrNoRoom is the sentinel of a destination with too little capacity.
	ErrNoRoom = errors.New("no room for the protected packet")
	// ErrIndexUsed is the sentinel of an index that was sealed before, or may have been.
	ErrIndexUsed = errors.New("index was used before")
)

// sealedWindow is the maximum distance of a packet behind the highest packet of the stream: half of the range of 16-bit
// sequence numbers.
const sealedWindow = 1 << 15

// srtcpTrailerSize is the size of the index with the encryption flag, which every SRTCP packet has (RFC 3711 section
// 3.4).
const srtcpTrailerSize = 4

// Sealer protects the packets that one peer sends. A Sealer is not safe for concurrent use, except that one goroutine
// may seal RTP while another seals RTCP.
type Sealer struct {
	tagSize int

	transform transform
	sealed    streams

	rtcp       *pion.Context
	rtcpHeader rtcp.Header // scratch memory for parsing
}

// NewSealer returns the sealer of one side of a DTLS connection, client or server. The sealer must be the only one with
// these keys for this side: another sealer would not know the indices used by this sealer. Errors wrap ErrProfile or
// ErrKeys.
func NewSealer(k Keys, client bool) (*Sealer, error) {
	key, salt, err := k.direction(client)
	if err != nil {
		return nil, err
	}
	s := &Sealer{tagSize: k.Profile.tagSize(), sealed: newStreams(sealedWindow, 0)}
	if s.transform, err = newTransform(k.Profile, key, salt); err != nil {
		return nil, err
	}
	if s.rtcp, err = newContext(k.Profile, key, salt); err != nil {
		return nil, err
	}
	return s, nil
}

// Overhead returns the number of bytes by which a protected RTP packet is longer than header, payload and padding.
func (s *Sealer) Overhead() int { return s.tagSize }

// OverheadRTCP returns the number of bytes by which a protected RTCP packet is longer than the packet.
func (s *Sealer) OverheadRTCP() int { return s.tagSize + srtcpTrailerSize }

// Seal appends a protected packet to dst and returns the result: header, encrypted payload, tag. If the header has a
// PaddingSize, that padding is added to the payload. The payload may be at its final position in dst; otherwise it must
// not overlap dst's free capacity.
//
// Packets of a stream may be sealed in any order, up to 32,767 behind the highest of the stream. The rollover counter
// follows from the order: a number more than 32,768 away from the highest counts as the nearer number, on the other
// side of the rollover.
//
// Errors wrap ErrNoRoom if the capacity of dst, which is never grown, is too small; ErrIndexUsed if a packet with this
// SSRC, rollover counter and sequence number was sealed before, or too long ago to know, or no index is left;
// ErrMalformed if the header is not of RTP version 2. After an error, dst up to its length is unchanged, its free
// capacity is undefined, and the index can still be used if unused before.
func (s *Sealer) Seal(dst []byte, h *rtp.Header, payload []byte) ([]byte, error) {
	w, err := s.sealed.find(h.SSRC)
	if err != nil {
		return nil, err
	}
	index := w.estimate(h.SequenceNumber)
	if !w.fresh(index) {
		return nil, fmt.Errorf("%w: SSRC %d, rollover counter %d, sequence number %d", ErrIndexUsed, h.SSRC, index>>16,
			h.SequenceNumber)
	}
	room := dst[len(dst):cap(dst)]
	size, err := h.MarshalTo(room)
	if err != nil && h.MarshalSize() <= len(room) {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	padding := 0
	if h.Padding {
		padding = int(h.PaddingSize)
	}
	total := size + len(payload) + padding + s.tagSize
	if err != nil || total > len(room) {
		return nil, fmt.Errorf("%w: %d bytes, header of %d and payload of %d", ErrNoRoom, len(room), h.MarshalSize(),
			len(payload))
	}
	// A header with a field beyond the format, for example 16 CSRCs, is parsed as a different header.
	if headerSize(room[:size]) != size {
		return nil, fmt.Errorf("%w: header of SSRC %d, sequence number %d", ErrMalformed, h.SSRC, h.SequenceNumber)
	}
	if padding > 0 {
		payload = pad(room[size:total-s.tagSize], payload)
	}
	if err := s.transform.seal(room[:total], size, payload, h.SSRC, index); err != nil {
		return nil, err
	}
	s.sealed.accept(h.SSRC, w, index)
	return dst[:len(dst)+total], nil
}

// pad fills body with the payload and padding (RFC 3550 section 5.1): zeros, then the length of the padding, including
// this byte.
func pad(body, payload []byte) []byte {
	n := copy(body, payload)
	clear(body[n:])
	body[len(body)-1] = byte(len(body) - n)
	return body
}

// SealRTCP appends a protected RTCP packet, single or compound, to dst and returns the result. The packet may be at its
// final position in dst; otherwise it must not overlap dst's free capacity. Errors wrap ErrNoRoom if the capacity of
// dst, which is never grown, is too small; ErrMalformed if packet is not an RTCP packet with an SSRC; ErrIndexUsed if
// all 2^31 indices of the SSRC are used.
func (s *Sealer) SealRTCP(dst, packet []byte) ([]byte, error) {
	if len(packet) < rtcpHeaderSize {
		return nil, fmt.Errorf("%w: RTCP packet of %d bytes", ErrMalformed, len(packet))
	}
	if err := s.rtcpHeader.Unmarshal(packet); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	room := dst[len(dst):cap(dst)]
	if total := len(packet) + s.OverheadRTCP(); total > len(room) {
		return nil, fmt.Errorf("%w: %d bytes, RTCP takes %d", ErrNoRoom, len(room), total)
	}
	ssrc := binary.BigEndian.Uint32(packet[4:])
	out, err := s.rtcp.EncryptRTCP(room, packet, &s.rtcpHeader)
	if err != nil {
		return nil, fmt.Errorf("%w: SRTCP of SSRC %d: %w", ErrIndexUsed, ssrc, err)
	}
	return dst[:len(dst)+len(out)], nil
}
