// Package forwardtest makes the packets of publishers for tests of the forwarding path.
package forwardtest

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
)

// Ingress takes the packets of a publisher.
type Ingress interface {
	RTP(ssrc uint32, packet []byte, info *transport.PacketInfo)
	Flush()
}

// Publisher makes the packets of one track. A Publisher belongs to one goroutine.
type Publisher struct {
	T         testing.TB
	To        Ingress
	SSRC, RTX uint32
	// Sequence is the RTP sequence number of the next packet, Number the number of the current frame.
	Sequence  uint16
	Number    uint32
	Timestamp uint32
	// Extension is the identifier of an empty transport-wide sequence number in packets, 0 for none.
	Extension uint8
	// Parity is the number of parity fragments per frame.
	Parity uint16

	fragmenter payload.Fragmenter
}

// NewPublisher returns a publisher whose retransmissions have the next SSRC.
func NewPublisher(t testing.TB, to Ingress, ssrc uint32) *Publisher {
	return &Publisher{T: t, To: to, SSRC: ssrc, RTX: ssrc + 1, Sequence: uint16(ssrc) * 1000, Timestamp: 5000}
}

// Next begins a frame. All tracks of a publication must begin it together.
func (p *Publisher) Next() {
	p.Number++
	p.Timestamp += 3000
}

// Packets returns the packets of the current frame of payload v1, of that many bytes.
func (p *Publisher) Packets(size int) [][]byte {
	p.T.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i) ^ byte(p.Number) ^ byte(p.SSRC)
	}
	if err := p.fragmenter.Begin(payload.Descriptor{Frame: p.Number, Parity: p.Parity}, data); err != nil {
		p.T.Fatal(err)
	}
	var packets [][]byte
	for i := range p.fragmenter.Packets() {
		body, err := p.fragmenter.AppendPacket(nil, i)
		if err != nil {
			p.T.Fatal(err)
		}
		packets = append(packets, p.Packet(body, i == p.fragmenter.Packets()-1))
	}
	return packets
}

// Packet returns one packet at the current timestamp.
func (p *Publisher) Packet(body []byte, marker bool) []byte {
	p.T.Helper()
	packet := rtp.Packet{
		Header: rtp.Header{Version: 2, Marker: marker, PayloadType: 96, SequenceNumber: p.Sequence,
			Timestamp: p.Timestamp, SSRC: p.SSRC},
		Payload: body,
	}
	p.Sequence++
	if p.Extension != 0 {
		if err := feedback.SetTransportSequence(&packet.Header, p.Extension, 0); err != nil {
			p.T.Fatal(err)
		}
	}
	raw, err := packet.Marshal()
	if err != nil {
		p.T.Fatal(err)
	}
	return raw
}

// InfoAt returns the info of a packet without stamps that arrived at the time.
func InfoAt(now time.Time) *transport.PacketInfo { return &transport.PacketInfo{At: now} }

// Send passes packets to the ingress, as one batch.
func (p *Publisher) Send(now time.Time, packets ...[]byte) { p.SendInfo(InfoAt(now), packets...) }

// SendInfo passes packets with one info to the ingress, as one batch.
func (p *Publisher) SendInfo(info *transport.PacketInfo, packets ...[]byte) {
	for _, packet := range packets {
		p.To.RTP(p.SSRC, packet, info)
	}
	p.To.Flush()
}

// Repair passes retransmissions of packets to the ingress, as one batch.
func (p *Publisher) Repair(now time.Time, packets ...[]byte) {
	for _, packet := range packets {
		p.To.RTP(p.RTX, p.Retransmission(packet), InfoAt(now))
	}
	p.To.Flush()
}

// Retransmission returns the RTX packet of a packet (RFC 4588).
func (p *Publisher) Retransmission(packet []byte) []byte {
	p.T.Helper()
	var original rtp.Packet
	if err := original.Unmarshal(packet); err != nil {
		p.T.Fatal(err)
	}
	n := original.SequenceNumber
	original.SSRC, original.PayloadType, original.SequenceNumber = p.RTX, 97, n*7
	original.Payload = append([]byte{byte(n >> 8), byte(n)}, original.Payload...)
	raw, err := original.Marshal()
	if err != nil {
		p.T.Fatal(err)
	}
	return raw
}
