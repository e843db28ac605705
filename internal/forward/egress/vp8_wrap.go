package egress

import (
	"encoding/binary"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
)

// Browsers accept only frames of their own codecs, but pass frames to a page's script before decoding
// (RTCRtpScriptTransform). A peer that accepts neither payload v1 nor opaque frames, but VP8, receives other frames
// wrapped as VP8 key frames. Every packet begins with a VP8 payload descriptor (RFC 7741 section 4.2). The first packet
// of a frame continues with the header of a key frame, followed by the unchanged frame. For payload v1, the first
// packet keeps its descriptor, from which the script reads the frame's number, quality and length; the other packets
// lose their descriptors. The browser reassembles the key frame header, one descriptor, and the frame. A browser needs
// every packet in order, so the peer is sent no parity.

// VP8 payload descriptors: the S bit marks the beginning of a partition, which is partition 0 in all packets.
const (
	vp8Begins    = 0x10
	vp8Continues = 0x00
)

// vp8KeyFrame is the header of a VP8 key frame of 16 by 16 pixels (RFC 6386 section 9.1). Browsers read only this
// header before the script runs.
var vp8KeyFrame = [...]byte{0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x10, 0x00, 0x10, 0x00}

// vp8WrapSize is the maximum number of bytes that wrapping adds to a packet. The largest packet then has 1,160 + 1 +
// 10 bytes of payload. With 12 bytes of RTP header, 8 of a transport-wide number, 2 of a retransmission and 16 of an
// AEAD tag the total is 1,209 bytes: below the 1,280 bytes that every IPv6 path carries, less 48 bytes for IPv6 and
// UDP.
const vp8WrapSize = 1 + len(vp8KeyFrame)

// vp8Wrap writes the payload of a packet as VP8 to dst, which must have room for vp8WrapSize more bytes, and returns
// the result.
func vp8Wrap(dst []byte, f *switching.Packet, body []byte) []byte {
	begins := f.Opens
	if f.Framed {
		// The fragment index follows version and quality. The first packet of a frame may not be the first to arrive.
		begins = binary.BigEndian.Uint16(body[2:]) == 0
		if !begins {
			body = body[payload.DescriptorSize:]
		}
	}
	dst = dst[:0]
	if begins {
		dst = append(dst, vp8Begins)
		dst = append(dst, vp8KeyFrame[:]...)
	} else {
		dst = append(dst, vp8Continues)
	}
	return append(dst, body...)
}

// wireForm is the form in which a peer receives a track: the payload types, 0 for retransmissions if they are not
// negotiated, and whether packets are wrapped as VP8.
type wireForm struct {
	payloadType, retransmissionType uint8
	vp8Wrapped                      bool
}

// wire holds the buffers for packets that a writer builds.
type wire struct {
	// wrapped holds a payload wrapped as VP8, header and repair hold a retransmission.
	wrapped [packetlog.MaxPayload + vp8WrapSize]byte
	header  rtp.Header
	repair  [packetlog.MaxPayload + vp8WrapSize + 2]byte
}

// body returns the payload of a packet in the form of the slot's peer. It is valid until the next call.
func (w *wire) body(form wireForm, p *packetlog.Packet) []byte {
	if !form.vp8Wrapped {
		return p.Payload
	}
	return vp8Wrap(w.wrapped[:], &p.Facts, p.Payload)
}
