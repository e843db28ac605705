package ingress

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// stepped steps an ingress for some time and returns the RTCP packets that it would send.
func (r *rig) stepped(i *Ingress, d time.Duration) []rtcp.Packet {
	var all []rtcp.Packet
	for end := r.now.Add(d); !r.now.After(end); r.now = r.now.Add(time.Millisecond) {
		packets, _ := i.step(r.now)
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

// TestRequestedPacketsAreCountedOnce pauses a publisher within a frame for 35 ms, so that the rest of the frame is
// requested twice. The packets count once: as delayed if they arrive without retransmission, as recovered if they are
// retransmitted, as lost otherwise.
func TestRequestedPacketsAreCountedOnce(t *testing.T) {
	for _, test := range []struct {
		name                     string
		come                     func(*publisher, time.Time, ...[]byte)
		recovered, delayed, lost uint64
	}{
		{name: "delayed", come: (*publisher).Send, delayed: 6},
		{name: "retransmitted", come: (*publisher).Repair, recovered: 6},
		{name: "lost", come: func(*publisher, time.Time, ...[]byte) {}, lost: 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			i := r.ingress(&fakePeer{rtt: 20 * time.Millisecond})
			p := r.publish(i, 10, volumetric.MIMEVolumetric)
			p.Next()
			packets := p.Packets(10 * 1144)
			p.Send(r.now, packets[:4]...)
			requests := asked(r.stepped(i, 40*time.Millisecond), 10)
			test.come(p, r.now, packets[4:]...)
			requests = append(requests, asked(r.stepped(i, 300*time.Millisecond), 10)...)
			stats := r.stats()
			if stats.Requested != uint64(len(requests)) || stats.Requested < 12 {
				t.Errorf("%d requests are counted, %d were sent, expected two at least of each packet", stats.Requested,
					len(requests))
			}
			if stats.Recovered != test.recovered || stats.Delayed != test.delayed || stats.Lost != test.lost {
				t.Errorf("%d packets are recovered, %d delayed and %d lost, expected %d, %d and %d", stats.Recovered,
					stats.Delayed,
					stats.Lost, test.recovered, test.delayed, test.lost)
			}
		})
	}
}

func TestIdleIngressRests(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	if _, next := i.step(r.now); !next.IsZero() {
		t.Errorf("without streams the next step is at %v, expected none", next)
	}
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	p.Next()
	p.Send(r.now, p.Packets(4000)...)
	if _, next := i.step(r.now.Add(100 * time.Millisecond)); next.Before(r.now.Add(time.Second)) {
		t.Errorf("with nothing missing the next step is after %v, expected the next report", next.Sub(r.now))
	}
	if n := p.track.Stats().CacheBytes; n == 0 {
		t.Error("the cache is empty though the packets are new")
	}
	i.step(r.now.Add(1100 * time.Millisecond))
	if n := p.track.Stats().CacheBytes; n != 0 {
		t.Errorf("a track that has fallen silent keeps %d bytes", n)
	}
	i.Unbind(p.track)
	if _, next := i.step(r.now); !next.IsZero() {
		t.Errorf("without streams the next step is at %v, expected none", next)
	}
}

func TestReceiverReports(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	var publishers []*publisher
	for n := range 100 {
		publishers = append(publishers, r.publish(i, uint32(10+2*n), volumetric.MIMEVolumetric))
	}
	for n, p := range publishers {
		p.Next()
		packets := p.Packets(4 * 1144)
		if n == 7 {
			packets = append(packets[:1], packets[2:]...)
		}
		p.Send(r.now, packets...)
	}
	packets, _ := i.step(r.now.Add(time.Second))
	blocks := make(map[uint32]rtcp.ReceptionReport)
	for _, p := range packets {
		if report, ok := p.(*rtcp.ReceiverReport); ok {
			for _, block := range report.Reports {
				blocks[block.SSRC] = block
			}
		}
	}
	if len(blocks) != 100 {
		t.Fatalf("%d streams are reported, expected 100", len(blocks))
	}
	for n, p := range publishers {
		lost := uint32(0)
		if n == 7 {
			lost = 1
		}
		if got := blocks[p.SSRC].TotalLost; got != lost {
			t.Errorf("%d packets are reported lost, expected %d", got, lost)
		}
	}
}
