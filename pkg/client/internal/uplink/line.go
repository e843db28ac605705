package uplink

import (
	"math/rand/v2"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Outlet is one outgoing RTP stream of the peer connection, as transport.Outlet is.
type Outlet interface {
	// Queue queues a packet, which leaves when the peer is flushed.
	Queue(header *rtp.Header, payload []byte) error
	// SSRC and RetransmissionSSRC return 0 if there is no such stream.
	SSRC() uint32
	RetransmissionSSRC() uint32
	// PayloadType returns the negotiated payload types of a media type.
	PayloadType(mimeType string) (media, retransmission uint8, ok bool)
}

// line is one RTP stream that the client sends. The track on the line may change. The sequence numbers continue, since
// they belong to the SSRC.
type line struct {
	outlet      Outlet
	publication *Publication
	track       int
	// held are the packets that wait to leave on the line. They have no sequence numbers yet.
	held pacing.Flow[heldPacket]

	next           uint16
	history        *feedback.SendHistory
	retransmission feedback.RTX
	reports        *feedback.SenderReporter
	// copied is the state of the line's copies on a second path.
	copied redundancy.Stream
}

// Outgoing is one numbered packet that leaves.
type Outgoing struct {
	line    *line
	Header  rtp.Header
	Payload []byte
	// Copied is set if the packet leaves on a second path, too.
	Copied bool
	// Doubled is set if the packet leaves twice on the first path.
	Doubled bool
	// Times are the times of the frame if this packet is stamped, and Mark is the stamp. Times is nil otherwise.
	Times *frametrace.Sent
	Mark  frametrace.Mark
}

// keep adds the packet to its line's history as the packet leaves. A request for a packet that has not left yet finds
// nothing.
func (o *Outgoing) keep(now time.Time) {
	o.line.history.Put(feedback.Sent{
		Sequence:    o.Header.SequenceNumber,
		Timestamp:   o.Header.Timestamp,
		Marker:      o.Header.Marker,
		PayloadType: o.Header.PayloadType,
		Payload:     o.Payload,
		At:          now,
	})
}

// size returns the size of the packet on the wire, in bytes.
func (o *Outgoing) size() int { return o.Header.MarshalSize() + len(o.Payload) + wireOverhead }

// Write queues the packet at its outlet. If the connection is closing, the packet is lost, as on the network.
func (o *Outgoing) Write() { _ = o.line.outlet.Queue(&o.Header, o.Payload) }

func newLine(o Outlet) *line {
	return &line{
		outlet: o,
		// A receiver that missed the packets before an early wrap would have the wrong rollover counter (RFC 3711
		// section 3.3.1).
		next:           uint16(rand.Uint32N(1 << 15)),
		retransmission: feedback.RTX{Next: uint16(rand.Uint32N(1 << 15))},
		history:        feedback.NewSendHistory(feedback.DefaultConfig().History),
	}
}

// carry assigns the line to a track of a publication.
func (l *line) carry(p *Publication, track int) {
	if l.publication == p && l.track == track {
		return
	}
	l.release()
	l.publication, l.track = p, track
	p.lines[track] = l
	if l.reports != nil {
		l.reports.Unmap()
	}
}

// release ends the assignment of the line to its track.
func (l *line) release() {
	if l.publication != nil && l.publication.lines[l.track] == l {
		l.publication.lines[l.track] = nil
	}
	l.publication = nil
}

// begin prepares the line for a frame, and reports whether the server accepts the frame's codec on the line.
func (l *line) begin(f *heldFrame) bool {
	codec := f.publication.description.Codec
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

// packet makes the packet with the given index of a frame that has begun.
func (l *line) packet(f *heldFrame, index int) Outgoing {
	last := index == len(f.payloads)-1
	o := Outgoing{line: l, Payload: f.payloads[index], Header: rtp.Header{
		Version:        2,
		Marker:         last && f.publication.description.Kind == volumetric.KindVideo,
		PayloadType:    f.payloadType,
		SequenceNumber: l.next,
		Timestamp:      f.timestamp,
		SSRC:           l.outlet.SSRC(),
	}}
	if o.Mark = f.times.Mark(o.Header.SSRC, o.Header.SequenceNumber, index, len(f.payloads)); o.Mark != 0 {
		o.Times = f.times
	}
	l.reports.Count(len(o.Payload))
	l.next++
	return o
}

// repeats reports whether retransmissions were negotiated for the line.
func (l *line) repeats() bool { return l.retransmission.SSRC != 0 && l.retransmission.PayloadType != 0 }

// again makes the retransmission of a packet.
func (l *line) again(sent *feedback.Sent) (o Outgoing, ok bool) {
	header := rtp.Header{Version: 2, Marker: sent.Marker, SequenceNumber: sent.Sequence, Timestamp: sent.Timestamp}
	// The original sequence number has two bytes (RFC 4588 section 4).
	body, err := l.retransmission.Pack(make([]byte, len(sent.Payload)+2), &header, sent.Payload)
	return Outgoing{line: l, Header: header, Payload: body}, err == nil
}
