package egress

import (
	"encoding/binary"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
)

// Browsers take frames of their own codecs only, but hand them to a page's script before they decode them
// (RTCRtpScriptTransform). To a peer that takes neither payload v1 nor opaque frames, but VP8, the others' frames go
// disguised as VP8 key frames: every packet has a payload descriptor of VP8 (RFC 7741 section 4.2), and the first of a
// frame the header of a key frame, behind which the frame begins as it is. Of payload v1 the first packet keeps its
// descriptor, from which the script learns the frame's number, quality and length, and the others lose theirs: what the
// browser puts together is the key frame's header, one descriptor, and the frame. A browser needs every packet in
// order, so that it is sent no parity.

// The payload descriptor of VP8: its S bit says that a partition begins, which is partition 0 in all packets.
const (
	vp8Begins    = 0x10
	vp8Continues = 0x00
)

// vp8KeyFrame is the header of a VP8 key frame of 16 by 16 pixels (RFC 6386 section 9.1), which is all that a browser
// looks at before the script.
var vp8KeyFrame = [...]byte{0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x10, 0x00, 0x10, 0x00}

// disguiseSize is what the disguise adds to a packet at most. The largest packet then has 1,160 + 1 + 10 bytes of
// payload, and with 12 of RTP header, 8 of a transport-wide number, 2 of a retransmission and 16 of an AEAD tag 1,209:
// below the 1,280 that every path with IPv6 carries, less 48 for IPv6 and UDP.
const disguiseSize = 1 + len(vp8KeyFrame)

// disguise writes the payload of a packet as one of VP8 to dst, which must have room for disguiseSize more bytes, and
// returns it.
func disguise(dst []byte, f *switching.Packet, body []byte) []byte {
	begins := f.Opens
	if f.Framed {
		// The fragment's index, after version and quality: the first packet of a frame may not be the first to arrive.
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

// wireForm is how a peer takes the packets of a track: under which payload types, 0 for retransmissions if it takes
// none, and whether disguised.
type wireForm struct {
	payloadType, retransmissionType uint8
	disguised                       bool
}

// wire has room for the packets that a writer makes on their way to the wire.
type wire struct {
	// disguised is the payload being disguised, header and repair are the retransmission being written.
	disguised [packetlog.MaxPayload + disguiseSize]byte
	header    rtp.Header
	repair    [packetlog.MaxPayload + disguiseSize + 2]byte
}

// body gives the payload of a packet as the slot's peer takes it. It is valid until the next call.
func (w *wire) body(form wireForm, p *packetlog.Packet) []byte {
	if !form.disguised {
		return p.Payload
	}
	return disguise(w.disguised[:], &p.Facts, p.Payload)
}
