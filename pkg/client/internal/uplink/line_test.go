package uplink

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestNumbersStayWithTheLine(t *testing.T) {
	u := newRig(t)
	first, wires := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 1))
	l := u.lines["b"]
	l.next = 65534
	send := func(p *Publication) {
		t.Helper()
		write(t, u, p, 0, 0, 1, 3000)
		flush(u, time.Now().Add(time.Second))
	}
	send(first)
	// The publication ends, and another one uses its line.
	u.Detach(first)
	second := NewPublication(described("desk", volumetric.MIMEVolumetric, 1, 1), defaultSpread, 0)
	u.Attach("b", nil, second, 0, 0)
	if _, ok := l.reports.Report(time.Now()); ok {
		t.Error("a sender report maps the former publication's timestamps")
	}
	send(second)
	want := uint16(65534)
	for _, packet := range wires[0].sent {
		if packet.SequenceNumber != want || packet.SSRC != 100 || packet.PayloadType != 96 {
			t.Errorf("number %d, SSRC %d, payload type %d; want %d, 100, 96", packet.SequenceNumber, packet.SSRC,
				packet.PayloadType, want)
		}
		want++
	}
	if len(wires[0].sent) != 6 {
		t.Errorf("%d packets, want 6", len(wires[0].sent))
	}
	if first.lines[0] != nil || second.lines[0] != l {
		t.Error("the line is not where it was given")
	}
}

func TestRetransmissions(t *testing.T) {
	u := newRig(t)
	p, wires := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 1))
	u.lines["b"].next = 65534
	write(t, u, p, 0, 0, 1, 3000)
	nack := func(at time.Time) []Outgoing {
		t.Helper()
		// Numbers 65535, 0 and 1: the last was never sent.
		nack := &rtcp.TransportLayerNack{MediaSSRC: 100, Nacks: []rtcp.NackPair{{PacketID: 65535, LostPackets: 3}}}
		if !u.Repeat(nack, at, 0) {
			t.Fatal("the request is not about a line")
		}
		return u.Depart(at, nil)
	}
	for _, o := range nack(time.Now().Add(time.Second)) {
		if o.Header.SSRC != 100 {
			t.Error("a packet is repeated that had not left")
		}
		o.Write()
	}
	sent := time.Now().Add(time.Second)
	got := nack(sent.Add(100 * time.Millisecond))
	if len(got) != 2 {
		t.Fatalf("%d retransmissions, want 2", len(got))
	}
	for i, packet := range got {
		original := wires[0].sent[i+1]
		number := binary.BigEndian.Uint16(packet.Payload)
		if number != original.SequenceNumber || string(packet.Payload[2:]) != string(original.Payload) {
			t.Errorf("retransmission %d brings number %d, want %d with its payload", i, number, original.SequenceNumber)
		}
		if h := packet.Header; h.SSRC != 101 || h.PayloadType != 97 || h.Timestamp != original.Timestamp ||
			h.Marker != original.Marker {
			t.Errorf("retransmission %d has header %+v, want SSRC 101, payload type 97 and the rest of %+v", i, h,
				original.Header)
		}
	}
	if first, second := got[0].Header.SequenceNumber, got[1].Header.SequenceNumber; second != first+1 {
		t.Errorf("retransmissions are numbered %d and %d", first, second)
	}
	if n := u.lines["b"].history.Len(); n != 3 {
		t.Errorf("%d packets are kept, want the 3 that were sent first", n)
	}
	// No error is reported for packets that the remote peer could not accept.
	outlet := &wire{mimeType: volumetric.MIMEVolumetric, ssrc: 100}
	u.lines["b"].outlet = outlet
	u.lines["b"].retransmission.SSRC, u.lines["b"].retransmission.PayloadType = 0, 0
	if got := nack(sent.Add(101 * time.Millisecond)); len(got) != 0 {
		t.Errorf("%d retransmissions to a peer without RTX", len(got))
	}
}
