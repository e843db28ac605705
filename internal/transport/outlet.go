package transport

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrUnbound says that an outlet's line is not negotiated yet, or its peer connection is closed.
var ErrUnbound = errors.New("outlet is not bound")

// Outlet is one outgoing RTP stream of a peer connection: the line stays, whatever is sent on it. Its owner writes headers whole; nothing
// below stores, copies or changes them. Writing on one outlet is for one goroutine at a time.
type Outlet struct {
	id      string
	kind    webrtc.RTPCodecType
	binding atomic.Pointer[binding]
}

// binding is what negotiation gives an outlet.
type binding struct {
	writer         webrtc.TrackLocalWriter
	ssrc           uint32
	retransmission uint32
	codecs         []webrtc.RTPCodecParameters
}

// newOutlet makes an outlet that waits for its binding.
func newOutlet(id string, kind volumetric.Kind) *Outlet {
	return &Outlet{id: id, kind: kindOf(kind)}
}

// WriteRTP sends one packet. The header's SSRC must be SSRC or RetransmissionSSRC.
func (o *Outlet) WriteRTP(header *rtp.Header, payload []byte) error {
	b := o.binding.Load()
	if b == nil {
		return fmt.Errorf("%s: %w", o.id, ErrUnbound)
	}
	_, err := b.writer.WriteRTP(header, payload)
	return err
}

// SSRC is the stream's SSRC, 0 before the line is negotiated.
func (o *Outlet) SSRC() uint32 {
	if b := o.binding.Load(); b != nil {
		return b.ssrc
	}
	return 0
}

// RetransmissionSSRC is the SSRC of the stream's RTX stream (RFC 4588), 0 where the remote peer takes none.
func (o *Outlet) RetransmissionSSRC() uint32 {
	if b := o.binding.Load(); b != nil {
		return b.retransmission
	}
	return 0
}

// PayloadType gives the negotiated payload types of a media type and of its retransmissions (0 where there are none). Types that lines do
// not offer by name travel as volumetric.MIMEOpaque. It is not ok for a codec that the remote peer does not take.
func (o *Outlet) PayloadType(mimeType string) (media, retransmission uint8, ok bool) {
	b := o.binding.Load()
	if b == nil {
		return 0, 0, false
	}
	mimeType = volumetric.Codec{MIMEType: mimeType}.MIMEOnWire()
	for _, c := range b.codecs {
		if strings.EqualFold(c.MimeType, mimeType) {
			return uint8(c.PayloadType), b.retransmissionPayloadType(c.PayloadType), true
		}
	}
	return 0, 0, false
}

// retransmissionPayloadType finds the RTX payload type by its "apt" parameter.
func (b *binding) retransmissionPayloadType(media webrtc.PayloadType) uint8 {
	format := fmt.Sprintf("apt=%d", media)
	for _, c := range b.codecs {
		if strings.EqualFold(c.MimeType, webrtc.MimeTypeRTX) && c.SDPFmtpLine == format {
			return uint8(c.PayloadType)
		}
	}
	return 0
}

// Bind implements webrtc.TrackLocal.
func (o *Outlet) Bind(ctx webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	codecs := ctx.CodecParameters()
	if len(codecs) == 0 {
		return webrtc.RTPCodecParameters{}, webrtc.ErrUnsupportedCodec
	}
	o.binding.Store(&binding{
		writer:         ctx.WriteStream(),
		ssrc:           uint32(ctx.SSRC()),
		retransmission: uint32(ctx.SSRCRetransmission()),
		codecs:         codecs,
	})
	return codecs[0], nil
}

// Unbind implements webrtc.TrackLocal.
func (o *Outlet) Unbind(webrtc.TrackLocalContext) error {
	o.binding.Store(nil)
	return nil
}

// ID implements webrtc.TrackLocal.
func (o *Outlet) ID() string { return o.id }

// RID implements webrtc.TrackLocal: lines are not simulcast.
func (o *Outlet) RID() string { return "" }

// StreamID implements webrtc.TrackLocal. Every outlet is a stream of its own, so that no peer tries to synchronise them.
func (o *Outlet) StreamID() string { return o.id }

// Kind implements webrtc.TrackLocal.
func (o *Outlet) Kind() webrtc.RTPCodecType { return o.kind }
