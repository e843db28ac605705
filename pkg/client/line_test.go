package client

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestNumbersStayWithTheLine(t *testing.T) {
	m := newRig(t, Config{})
	first, wires := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	l := m.lines["b"]
	l.next = 65534
	write := func(p *Publisher) {
		t.Helper()
		if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: time.Now(), Data: make([]byte, 3000)}); err != nil {
			t.Fatal(err)
		}
		flush(m, time.Now().Add(time.Second))
	}
	write(first)
	// The publication ends, and another takes its line.
	first.detach()
	second := newPublisher(m.session, described("desk", volumetric.MIMEVolumetric, 1, 1))
	m.attach("b", nil, second, 0, 0)
	if _, ok := l.reports.Report(time.Now()); ok {
		t.Error("a sender report maps the former publication's timestamps")
	}
	write(second)
	want := uint16(65534)
	for _, packet := range wires[0].sent {
		if packet.SequenceNumber != want || packet.SSRC != 100 || packet.PayloadType != 96 {
			t.Errorf("number %d, SSRC %d, payload type %d; want %d, 100, 96", packet.SequenceNumber, packet.SSRC, packet.PayloadType, want)
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
	m := newRig(t, Config{})
	m.session.peer = newPeer(t, m)
	p, wires := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	m.lines["b"].next = 65534
	if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: time.Now(), Data: make([]byte, 3000)}); err != nil {
		t.Fatal(err)
	}
	nack := func(at time.Time) []outgoing {
		t.Helper()
		// Numbers 65535, 0 and 1: the last has never been sent.
		data, err := rtcp.Marshal([]rtcp.Packet{&rtcp.TransportLayerNack{MediaSSRC: 100, Nacks: []rtcp.NackPair{{PacketID: 65535, LostPackets: 3}}}})
		if err != nil {
			t.Fatal(err)
		}
		m.RTCP(data, at)
		return m.uplink.depart(at, nil)
	}
	for _, o := range nack(time.Now().Add(time.Second)) {
		if o.header.SSRC != 100 {
			t.Error("a packet is repeated that had not left")
		}
		o.write()
	}
	sent := time.Now().Add(time.Second)
	got := nack(sent.Add(100 * time.Millisecond))
	if len(got) != 2 {
		t.Fatalf("%d retransmissions, want 2", len(got))
	}
	for i, packet := range got {
		original := wires[0].sent[i+1]
		number := binary.BigEndian.Uint16(packet.payload)
		if number != original.SequenceNumber || string(packet.payload[2:]) != string(original.Payload) {
			t.Errorf("retransmission %d brings number %d, want %d with its payload", i, number, original.SequenceNumber)
		}
		if h := packet.header; h.SSRC != 101 || h.PayloadType != 97 || h.Timestamp != original.Timestamp || h.Marker != original.Marker {
			t.Errorf("retransmission %d has header %+v, want SSRC 101, payload type 97 and the rest of %+v", i, h, original.Header)
		}
	}
	if first, second := got[0].header.SequenceNumber, got[1].header.SequenceNumber; second != first+1 {
		t.Errorf("retransmissions are numbered %d and %d", first, second)
	}
	if n := m.lines["b"].history.Len(); n != 3 {
		t.Errorf("%d packets are kept, want the 3 that were sent first", n)
	}
	// Nobody hears of what the remote peer could not take.
	outlet := newOutlet(volumetric.MIMEVolumetric, 100, 0)
	m.lines["b"].outlet = outlet
	m.lines["b"].retransmission.SSRC, m.lines["b"].retransmission.PayloadType = 0, 0
	if got := nack(sent.Add(101 * time.Millisecond)); len(got) != 0 {
		t.Errorf("%d retransmissions to a peer without RTX", len(got))
	}
}

func TestKeyFrameRequestsNameTheTrack(t *testing.T) {
	m := newRig(t, Config{})
	m.session.peer = newPeer(t, m)
	p, _ := published(t, m, described("film", volumetric.MIMEH264, 2, 3))
	for track := range 6 {
		if _, err := p.WritePackets(track/3, volumetric.Quality(track%3), time.Now(), [][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, request := range []rtcp.Packet{
		&rtcp.PictureLossIndication{MediaSSRC: 150},
		&rtcp.FullIntraRequest{MediaSSRC: 150, FIR: []rtcp.FIREntry{{SSRC: 150}}},
	} {
		data, err := request.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		m.RTCP(data, time.Now())
		select {
		case e := <-m.session.events:
			if want := (KeyFrameWanted{Publication: "film", Tile: 1, Quality: 2}); e != want {
				t.Errorf("%T asks for %+v, want %+v", request, e, want)
			}
		default:
			t.Errorf("%T is not passed on", request)
		}
	}
}
