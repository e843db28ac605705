package puppet

import (
	"fmt"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Line is one RTP stream of the puppet. A Line may be used by one goroutine at a time.
type Line struct {
	Track  Track
	Outlet *transport.Outlet

	next       uint16
	fragmenter payload.Fragmenter
	rtx        feedback.RTX
}

func newLine(track Track, outlet *transport.Outlet) *Line { return &Line{Track: track, Outlet: outlet} }

// Frame creates the packets of one frame of payload v1, with the next sequence numbers, but sends nothing.
func (l *Line) Frame(number uint32, data []byte) ([]rtp.Packet, error) {
	media, _, ok := l.Outlet.PayloadType(volumetric.MIMEVolumetric)
	if !ok {
		return nil, fmt.Errorf("%+v: no payload type", l.Track)
	}
	if err := l.fragmenter.Begin(payload.Descriptor{Quality: uint8(l.Track.Quality), Frame: number}, data); err != nil {
		return nil, err
	}
	packets := make([]rtp.Packet, l.fragmenter.Packets())
	for i := range packets {
		body, err := l.fragmenter.AppendPacket(nil, i)
		if err != nil {
			return nil, err
		}
		packets[i] = rtp.Packet{
			Header: rtp.Header{
				Version: 2, PayloadType: media, SSRC: l.Outlet.SSRC(), SequenceNumber: l.next,
				Timestamp: number * timestampStep,
				Marker:    i == len(packets)-1,
			},
			Payload: body,
		}
		l.next++
	}
	return packets, nil
}

// timestampStep is the duration of one frame at 30 frames per second on a clock of 90 kHz.
const timestampStep = 3000

// Write sends packets unchanged.
func (l *Line) Write(packets ...rtp.Packet) error {
	for i := range packets {
		if err := l.Outlet.WriteRTP(&packets[i].Header, packets[i].Payload); err != nil {
			return err
		}
	}
	return nil
}

// Repair sends a packet as a retransmission (RFC 4588).
func (l *Line) Repair(p rtp.Packet) error {
	_, retransmission, _ := l.Outlet.PayloadType(volumetric.MIMEVolumetric)
	l.rtx.SSRC, l.rtx.PayloadType = l.Outlet.RetransmissionSSRC(), retransmission
	header := p.Header
	body, err := l.rtx.Pack(make([]byte, len(p.Payload)+2), &header, p.Payload)
	if err != nil {
		return err
	}
	return l.Outlet.WriteRTP(&header, body)
}
