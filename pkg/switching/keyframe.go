package switching

import (
	"encoding/binary"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// NeedsKey reports whether decoding a track of the media type can begin only at a key frame that
// KeyFrame recognises.
func NeedsKey(mimeType string) bool {
	return strings.EqualFold(mimeType, volumetric.MIMEVP8) || strings.EqualFold(mimeType, volumetric.MIMEH264)
}

// KeyFrame reports whether the RTP payload begins a frame at which decoding can begin. For media
// types without NeedsKey every frame qualifies.
func KeyFrame(mimeType string, rtpPayload []byte) bool {
	switch {
	case strings.EqualFold(mimeType, volumetric.MIMEVP8):
		return KeyFrameVP8(rtpPayload)
	case strings.EqualFold(mimeType, volumetric.MIMEH264):
		return KeyFrameH264(rtpPayload)
	}
	return true
}

// vp8FrameHeader is the size of the uncompressed header of a VP8 key frame (RFC 6386 section 9.1),
// in bytes: frame tag, start code, dimensions.
const vp8FrameHeader = 10

// KeyFrameVP8 reports whether an RTP payload of VP8 (RFC 7741) contains the beginning of a key frame. KeyFrameVP8
// returns false for malformed payloads.
func KeyFrameVP8(rtpPayload []byte) bool {
	frame, ok := vp8Frame(rtpPayload)
	if !ok || len(frame) < vp8FrameHeader {
		return false
	}
	// RFC 6386 section 9.1: the lowest bit is 0 in key frames, and these three bytes follow the
	// frame tag.
	return frame[0]&0x01 == 0 && frame[3] == 0x9d && frame[4] == 0x01 && frame[5] == 0x2a
}

// vp8Frame returns the data after the payload descriptor (RFC 7741 section 4.2) if the packet
// begins the first partition of a frame.
func vp8Frame(b []byte) (frame []byte, ok bool) {
	if len(b) < 1 {
		return nil, false
	}
	const x, s, pid = 0x80, 0x10, 0x07
	if b[0]&s == 0 || b[0]&pid != 0 {
		return nil, false
	}
	if b[0]&x == 0 {
		return b[1:], true
	}
	if len(b) < 2 {
		return nil, false
	}
	const i, l, t, k, m = 0x80, 0x40, 0x20, 0x10, 0x80
	extension, size := b[1], 2
	if extension&i != 0 {
		if len(b) <= size {
			return nil, false
		}
		if b[size]&m != 0 {
			size++ // picture ID of 15 bits
		}
		size++
	}
	if extension&l != 0 {
		size++
	}
	if extension&(t|k) != 0 {
		size++
	}
	if len(b) < size {
		return nil, false
	}
	return b[size:], true
}

// Types of NAL units (RFC 6184 section 5.2 and ITU-T H.264 table 7-1).
const (
	nalIDR   = 5
	nalSPS   = 7
	nalSTAPA = 24
	nalFUA   = 28
)

// KeyFrameH264 reports whether an RTP payload of H.264 (RFC 6184) contains a sequence parameter set or the beginning of
// an IDR picture, alone, in an aggregate (STAP-A), or as the first fragment (FU-A). KeyFrameH264 returns false for
// malformed payloads.
func KeyFrameH264(rtpPayload []byte) bool {
	if len(rtpPayload) < 2 || forbidden(rtpPayload[0]) {
		return false
	}
	switch nalType(rtpPayload[0]) {
	case nalIDR, nalSPS:
		return true
	case nalSTAPA:
		return keyInAggregate(rtpPayload[1:])
	case nalFUA:
		const start, end = 0x80, 0x40
		fu := rtpPayload[1]
		// RFC 6184 section 5.8: the two bits must not both be set, and a fragment must not be
		// empty.
		return len(rtpPayload) > 2 && fu&start != 0 && fu&end == 0 && (nalType(fu) == nalIDR || nalType(fu) == nalSPS)
	}
	return false
}

func nalType(header byte) byte { return header & 0x1f }

func forbidden(header byte) bool { return header&0x80 != 0 }

// keyInAggregate reads the units of a STAP-A (RFC 6184 section 5.7.1). Each unit follows its 16-bit
// size. If any unit does not fit, the result is false.
func keyInAggregate(b []byte) bool {
	key := false
	for len(b) > 0 {
		if len(b) < 3 {
			return false
		}
		size := int(binary.BigEndian.Uint16(b))
		if size == 0 || size > len(b)-2 || forbidden(b[2]) {
			return false
		}
		key = key || nalType(b[2]) == nalIDR || nalType(b[2]) == nalSPS
		b = b[2+size:]
	}
	return key
}
