package egress

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// stepped steps an ingress for some time and returns the RTCP packets that it would send.
func (r *rig) stepped(i *ingress.Ingress, d time.Duration) []rtcp.Packet {
	var all []rtcp.Packet
	for end := r.now.Add(d); !r.now.After(end); r.now = r.now.Add(time.Millisecond) {
		packets, _ := step(i, r.now)
		all = append(all, packets...)
	}
	return all
}

// asked returns the sequence numbers that NACKs request.
func asked(packets []rtcp.Packet, ssrc uint32) []uint16 {
	var numbers []uint16
	for _, p := range packets {
		if nack, ok := p.(*rtcp.TransportLayerNack); ok && nack.MediaSSRC == ssrc {
			for _, pair := range nack.Nacks {
				numbers = append(numbers, pair.PacketList()...)
			}
		}
	}
	return numbers
}

func TestAsksThePublisherOnce(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{rtt: 20 * time.Millisecond})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	var subscribers []*subscriber
	for n := range 5 {
		s := r.subscribe(uint32(1000+10*n), volumetric.KindVideo)
		s.slot.Select(p.track, 1, r.now)
		subscribers = append(subscribers, s)
	}
	r.run()
	p.Next()
	packets := p.Packets(10 * 1144)
	first := p.Sequence - 10
	// One packet is lost in the middle, and two at the end.
	p.Send(r.now, packets[:4]...)
	p.Send(r.now, packets[5:8]...)
	r.run()
	if got := asked(r.stepped(i, 5*time.Millisecond), 10); !slices.Equal(got, []uint16{first + 4}) {
		t.Errorf("asked for %v at once, expected %d", got, first+4)
	}
	if got := asked(r.stepped(i, 14*time.Millisecond), 10); !slices.Equal(got, []uint16{first + 8, first + 9}) {
		t.Errorf("asked for %v after the frame fell silent, expected its end %d and %d", got, first+8, first+9)
	}
	for _, n := range []int{4, 8, 9} {
		p.Repair(r.now, packets[n])
	}
	// The same packets again, as a retransmission and in original form.
	p.Repair(r.now, packets[4])
	p.Send(r.now, packets[4], packets[0])
	r.run()
	if got := asked(r.stepped(i, 300*time.Millisecond), 10); len(got) != 0 {
		t.Errorf("asked for %v again", got)
	}
	for _, s := range subscribers {
		got := s.outlet.sent()
		if len(got) != 10 {
			t.Fatalf("%d packets were sent, expected 10", len(got))
		}
		checkContinuous(t, got)
	}
	stats := r.engine.Stats()
	if stats.Requested != 3 || stats.Recovered != 3 || stats.Duplicates != 3 ||
		stats.Received.Retransmission.Packets != 4 {
		t.Errorf("counted %d requested, %d recovered, %d duplicates, %d retransmissions, expected 3, 3, 3, 4",
			stats.Requested, stats.Recovered,
			stats.Duplicates, stats.Received.Retransmission.Packets)
	}
	if stats.Received.Media.Packets != 10 {
		t.Errorf("counted %d media packets, expected 10", stats.Received.Media.Packets)
	}
}

func TestRejectsMalformedPackets(t *testing.T) {
	r := newRig(t, func(c *rigConfig) { c.MaxFrameBytes = 100_000 })
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	good := p.Packets(2000)
	p.Send(r.now, good...)
	valid := func() []byte { return slices.Clone(good[0]) }
	i.RTP(10, nil, forwardtest.InfoAt(r.now))
	i.RTP(10, valid()[:11], forwardtest.InfoAt(r.now))
	version := valid()
	version[0] = 1<<6 | version[0]&0x3f
	i.RTP(10, version, forwardtest.InfoAt(r.now))
	ssrc := valid()
	ssrc[11] = 99
	i.RTP(10, ssrc, forwardtest.InfoAt(r.now))
	i.RTP(10, append(valid(), make([]byte, packetlog.MaxPayload)...), forwardtest.InfoAt(r.now))
	if got := r.engine.Stats().MalformedRTP; got != 5 {
		t.Errorf("%d malformed RTP packets counted, expected 5", got)
	}
	p.Send(r.now, p.Packet([]byte("no descriptor"), false))
	p.Send(r.now, p.Packet(nil, false))
	p.Next()
	for _, packet := range p.Packets(101_000) {
		p.Send(r.now, packet)
	}
	if got := r.engine.Stats().MalformedPayload; got != 2+89 {
		t.Errorf("%d malformed payloads counted, expected 91", got)
	}
	i.RTP(99, valid(), forwardtest.InfoAt(r.now))
	if got := r.engine.Stats().UnknownSSRC; got != 1 {
		t.Errorf("%d packets of unknown SSRC counted, expected 1", got)
	}
	p.Sequence += 20000
	p.Next()
	p.Send(r.now, p.Packets(100)...)
	r.run()
	if got := r.engine.Stats().Late; got != 1 {
		t.Errorf("%d stray packets counted, expected 1", got)
	}
	if n := len(s.outlet.sent()); n != 2 {
		t.Errorf("%d packets were sent, expected the 2 good ones", n)
	}
}
