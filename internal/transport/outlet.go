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

// ErrUnbound means that the line of an outlet is not negotiated, or that its peer connection is not there yet or has
// ended.
var ErrUnbound = errors.New("outlet is not bound")

// Outlet is one outgoing RTP stream of a peer connection. The line remains while the sent tracks change. The owner
// writes complete headers, which Outlet does not store, copy or change. One goroutine at a time writes on an outlet.
type Outlet struct {
	peer *Peer
	id   string
	// streams are the SSRCs of the line in descriptions.
	streams description.Streams
	binding atomic.Pointer[binding]
}

// binding is the negotiated state of an outlet.
type binding struct {
	codecs []description.Codec
	// retransmits is set if the remote peer accepts retransmissions on a separate stream.
	retransmits bool
}

// bound returns the outlet's binding, nil if nothing may be sent.
func (o *Outlet) bound() *binding {
	b := o.binding.Load()
	if b == nil || o.peer.closed.Load() {
		return nil
	}
	return b
}

// Queue queues one packet. Queued packets are sent at the next Peer.Flush or Peer.Post, or when the buffer is full. The
// header's SSRC must be SSRC or RetransmissionSSRC.
func (o *Outlet) Queue(header *rtp.Header, payload []byte) error {
	if o.bound() == nil {
		return fmt.Errorf("%s: %w", o.id, ErrUnbound)
	}
	return o.peer.outbox.queue(header, payload)
}

// WriteRTP sends one packet at once, after the queued ones.
func (o *Outlet) WriteRTP(header *rtp.Header, payload []byte) error {
	if err := o.Queue(header, payload); err != nil {
		return err
	}
	o.peer.Flush()
	return nil
}

// SSRC returns the stream's SSRC, 0 before the line is negotiated.
func (o *Outlet) SSRC() uint32 {
	if o.bound() == nil {
		return 0
	}
	return o.streams.SSRC
}

// RetransmissionSSRC returns the SSRC of the stream's RTX stream (RFC 4588), 0 if the remote peer accepts none.
func (o *Outlet) RetransmissionSSRC() uint32 {
	if b := o.bound(); b == nil || !b.retransmits {
		return 0
	}
	return o.streams.Retransmission
}

// PayloadType returns the negotiated payload types of a media type and of its retransmissions (0 if there are none).
// Media types that are not offered by name use volumetric.MIMEOpaque. ok is false if the remote peer does not accept
// the codec.
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

// bind sets the codecs that the remote peer accepts. Without codecs the outlet is unbound.
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
