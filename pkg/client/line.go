package client

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// outlet is one outgoing RTP stream of the peer connection, as transport.Outlet is.
type outlet interface {
	// Queue takes a packet that leaves when the peer is flushed.
	Queue(header *rtp.Header, payload []byte) error
	// SSRC and RetransmissionSSRC are 0 while there are none.
	SSRC() uint32
	RetransmissionSSRC() uint32
	// PayloadType gives the negotiated payload types of a media type.
	PayloadType(mimeType string) (media, retransmission uint8, ok bool)
}

// line is one RTP stream that the session sends: the publication, tile and quality on it may change, its numbering goes on. It belongs to
// media's lock; packets are written by the sending goroutine alone.
type line struct {
	outlet    outlet
	publisher *Publisher
	track     int

	next           uint16
	history        *feedback.SendHistory
	retransmission feedback.RTX
	reports        *feedback.SenderReporter
}

// outgoing is one numbered packet.
type outgoing struct {
	line    *line
	header  rtp.Header
	payload []byte
	// repeated says that the packet is a retransmission, which is not kept again.
	repeated bool
	// times are those of the frame, where a stamp is taken of this packet, and mark which.
	times *sentTimes
	mark  mark
}

// keep puts the packet into its line's history, as it leaves. A request for a packet that has not left yet finds nothing.
func (o *outgoing) keep(now time.Time) {
	if o.repeated {
		return
	}
	o.line.history.Put(feedback.Sent{
		Sequence:    o.header.SequenceNumber,
		Timestamp:   o.header.Timestamp,
		Marker:      o.header.Marker,
		PayloadType: o.header.PayloadType,
		Payload:     o.payload,
		At:          now,
	})
}

// count numbers the packet among all of the connection, as it leaves, with its size on the wire.
func (o *outgoing) count(history *feedback.TransportHistory, extension uint8, size int, now time.Time) (number int64) {
	kind := feedback.Media
	switch {
	case o.repeated:
		kind = feedback.Retransmission
	case o.line.publisher != nil && o.line.publisher.publication.Kind == volumetric.KindAudio:
		kind = feedback.Audio
	}
	number = history.Sent(size, kind, now)
	// The identifier is one that was negotiated; a packet that could not be numbered would leave all the same.
	_ = feedback.SetTransportSequence(&o.header, extension, uint16(number))
	return number
}

// write queues the packet at its peer. Its loss, should the connection be closing, is the network's kind of loss.
func (o *outgoing) write() { _ = o.line.outlet.Queue(&o.header, o.payload) }

func newLine(o outlet) *line {
	return &line{
		outlet: o,
		// A receiver that missed the packets before an early wrap would have the wrong rollover counter (RFC 3711 section 3.3.1).
		next:           uint16(rand.Uint32N(1 << 15)),
		retransmission: feedback.RTX{Next: uint16(rand.Uint32N(1 << 15))},
		history:        feedback.NewSendHistory(feedback.DefaultConfig().History),
	}
}

// carry gives the line to a track of a publisher.
func (l *line) carry(p *Publisher, track int) {
	if l.publisher == p && l.track == track {
		return
	}
	l.release()
	l.publisher, l.track = p, track
	p.lines[track] = l
	if l.reports != nil {
		l.reports.Unmap()
	}
}

// release takes the line from its track.
func (l *line) release() {
	if l.publisher != nil && l.publisher.lines[l.track] == l {
		l.publisher.lines[l.track] = nil
	}
	l.publisher = nil
}

// number makes packets of a frame's payloads. capture is by this host's clock, serverCapture the same instant by the server's.
func (l *line) number(timestamp uint32, capture, serverCapture time.Time, payloads [][]byte) ([]outgoing, error) {
	codec := l.publisher.publication.Codec
	media, retransmission, ok := l.outlet.PayloadType(codec.MIMEType)
	if !ok {
		return nil, fmt.Errorf("%w: the server takes no %s", ErrNotConnected, codec.MIMEType)
	}
	l.retransmission.SSRC, l.retransmission.PayloadType = l.outlet.RetransmissionSSRC(), retransmission
	if l.reports == nil {
		l.reports = feedback.NewSenderReporter(l.outlet.SSRC(), codec.ClockRate)
	}
	l.reports.Map(timestamp, serverCapture, capture)
	packets := make([]outgoing, len(payloads))
	for i, payload := range payloads {
		header := rtp.Header{
			Version:        2,
			Marker:         i == len(payloads)-1 && l.publisher.publication.Kind == volumetric.KindVideo,
			PayloadType:    media,
			SequenceNumber: l.next,
			Timestamp:      timestamp,
			SSRC:           l.outlet.SSRC(),
		}
		packets[i] = outgoing{line: l, header: header, payload: payload}
		l.reports.Count(len(payload))
		l.next++
	}
	return packets, nil
}

// repeat makes the retransmissions that a NACK asks for, as far as the packets are still kept and can have been lost.
func (l *line) repeat(nack *rtcp.TransportLayerNack, now time.Time, rtt time.Duration, packets []outgoing) []outgoing {
	if !l.repeats() {
		return packets
	}
	for _, pair := range nack.Nacks {
		pair.Range(func(sequence uint16) bool {
			sent, ok := l.history.Get(sequence)
			if !ok || !feedback.Answerable(sent.At, now, rtt) {
				return true
			}
			if o, ok := l.again(sent); ok {
				packets = append(packets, o)
			}
			return true
		})
	}
	return packets
}

// repeats tells whether retransmissions were negotiated for the line.
func (l *line) repeats() bool { return l.retransmission.SSRC != 0 && l.retransmission.PayloadType != 0 }

// again makes the retransmission of a packet.
func (l *line) again(sent *feedback.Sent) (o outgoing, ok bool) {
	header := rtp.Header{Version: 2, Marker: sent.Marker, SequenceNumber: sent.Sequence, Timestamp: sent.Timestamp}
	// The original number takes two bytes (RFC 4588 section 4).
	body, err := l.retransmission.Pack(make([]byte, len(sent.Payload)+2), &header, sent.Payload)
	return outgoing{line: l, header: header, payload: body, repeated: true}, err == nil
}
