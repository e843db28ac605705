package client

import (
	"math/rand/v2"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
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
	// held are the packets that wait to leave on the line. They have no sequence numbers yet.
	held pacing.Flow[heldPacket]

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
	// times are those of the frame, where a stamp is taken of this packet, and mark which.
	times *frametrace.Sent
	mark  frametrace.Mark
}

// keep puts the packet into its line's history, as it leaves. A request for a packet that has not left yet finds nothing.
func (o *outgoing) keep(now time.Time) {
	o.line.history.Put(feedback.Sent{
		Sequence:    o.header.SequenceNumber,
		Timestamp:   o.header.Timestamp,
		Marker:      o.header.Marker,
		PayloadType: o.header.PayloadType,
		Payload:     o.payload,
		At:          now,
	})
}

// size is the size of the packet on the wire, in bytes.
func (o *outgoing) size() int { return o.header.MarshalSize() + len(o.payload) + wireOverhead }

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

// begin prepares the line for a frame, and reports whether the line still takes the frame's codec.
func (l *line) begin(f *heldFrame) bool {
	codec := f.publisher.publication.Codec
	media, retransmission, ok := l.outlet.PayloadType(codec.MIMEType)
	if !ok {
		return false
	}
	f.payloadType = media
	l.retransmission.SSRC, l.retransmission.PayloadType = l.outlet.RetransmissionSSRC(), retransmission
	if l.reports == nil {
		l.reports = feedback.NewSenderReporter(l.outlet.SSRC(), codec.ClockRate)
	}
	l.reports.Map(f.timestamp, f.serverCapture, f.capture)
	return true
}

// packet makes the packet with an index of a frame that has begun.
func (l *line) packet(f *heldFrame, index int) outgoing {
	last := index == len(f.payloads)-1
	o := outgoing{line: l, payload: f.payloads[index], header: rtp.Header{
		Version:        2,
		Marker:         last && f.publisher.publication.Kind == volumetric.KindVideo,
		PayloadType:    f.payloadType,
		SequenceNumber: l.next,
		Timestamp:      f.timestamp,
		SSRC:           l.outlet.SSRC(),
	}}
	if o.mark = f.times.Mark(o.header.SSRC, o.header.SequenceNumber, index, len(f.payloads)); o.mark != 0 {
		o.times = f.times
	}
	l.reports.Count(len(o.payload))
	l.next++
	return o
}

// repeats reports whether retransmissions were negotiated for the line.
func (l *line) repeats() bool { return l.retransmission.SSRC != 0 && l.retransmission.PayloadType != 0 }

// again makes the retransmission of a packet.
func (l *line) again(sent *feedback.Sent) (o outgoing, ok bool) {
	header := rtp.Header{Version: 2, Marker: sent.Marker, SequenceNumber: sent.Sequence, Timestamp: sent.Timestamp}
	// The original number takes two bytes (RFC 4588 section 4).
	body, err := l.retransmission.Pack(make([]byte, len(sent.Payload)+2), &header, sent.Payload)
	return outgoing{line: l, header: header, payload: body}, err == nil
}
