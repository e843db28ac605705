package transport

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrUnbound says that an outlet's line is not negotiated yet, or its peer connection is not there, or not any more.
var ErrUnbound = errors.New("outlet is not bound")

// Outlet is one outgoing RTP stream of a peer connection: the line stays, whatever is sent on it. Its owner writes
// headers whole; nothing below stores, copies or changes them. Writing on one outlet is for one goroutine at a time.
type Outlet struct {
	peer *Peer
	id   string
	// streams are the SSRCs that the line is described with.
	streams description.Streams
	binding atomic.Pointer[binding]
}

// binding is what negotiation gives an outlet.
type binding struct {
	codecs []description.Codec
	// retransmits says that the remote peer takes retransmissions on a stream of their own.
	retransmits bool
}

// bound is what negotiation has given the outlet, nil where nothing may be sent.
func (o *Outlet) bound() *binding {
	b := o.binding.Load()
	if b == nil || o.peer.closed.Load() {
		return nil
	}
	return b
}

// Queue takes one packet to be sent with the others of its peer at the next Peer.Flush, or before, where they fill what
// is sent at once. The header's SSRC must be SSRC or RetransmissionSSRC.
func (o *Outlet) Queue(header *rtp.Header, payload []byte) error {
	if o.bound() == nil {
		return fmt.Errorf("%s: %w", o.id, ErrUnbound)
	}
	return o.peer.outbox.queue(header, payload)
}

// WriteRTP sends one packet at once, behind what is queued.
func (o *Outlet) WriteRTP(header *rtp.Header, payload []byte) error {
	if err := o.Queue(header, payload); err != nil {
		return err
	}
	o.peer.Flush()
	return nil
}

// SSRC is the stream's SSRC, 0 before the line is negotiated.
func (o *Outlet) SSRC() uint32 {
	if o.bound() == nil {
		return 0
	}
	return o.streams.SSRC
}

// RetransmissionSSRC is the SSRC of the stream's RTX stream (RFC 4588), 0 where the remote peer takes none.
func (o *Outlet) RetransmissionSSRC() uint32 {
	if b := o.bound(); b == nil || !b.retransmits {
		return 0
	}
	return o.streams.Retransmission
}

// PayloadType gives the negotiated payload types of a media type and of its retransmissions (0 where there are none).
// Types that lines do not offer by name travel as volumetric.MIMEOpaque. It is not ok for a codec that the remote peer
// does not take.
func (o *Outlet) PayloadType(mimeType string) (media, retransmission uint8, ok bool) {
	b := o.bound()
	if b == nil {
		return 0, 0, false
	}
	mimeType = volumetric.Codec{MIMEType: mimeType}.MIMEOnWire()
	for _, c := range b.codecs {
		if strings.EqualFold(c.MIMEType, mimeType) {
			return c.PayloadType, c.Retransmission, true
		}
	}
	return 0, 0, false
}

// bind takes what the remote peer has agreed to, nothing where it takes no packets.
func (o *Outlet) bind(codecs []description.Codec) {
	if len(codecs) == 0 {
		o.binding.Store(nil)
		return
	}
	b := &binding{codecs: codecs}
	for _, c := range codecs {
		b.retransmits = b.retransmits || c.Retransmission != 0
	}
	o.binding.Store(b)
}
