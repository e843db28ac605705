package ingress

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// requests passes time, and returns the number of packets that an ingress requests meanwhile.
func (r *rig) requests(i *Ingress, d time.Duration) (requests int) {
	for end := r.now.Add(d); r.now.Before(end); {
		r.now = r.now.Add(time.Millisecond)
		compounds, _ := i.Step(r.now)
		for _, compound := range compounds {
			for _, packet := range compound {
				if nack, ok := packet.(*rtcp.TransportLayerNack); ok {
					for _, pair := range nack.Nacks {
						requests += len(pair.PacketList())
					}
				}
			}
		}
	}
	return requests
}

// TestStall lets the path of a connection between servers stall for 60 ms in the middle of a frame, and loses the end
// of other frames. Late packets are not requested, and lost ones are.
func TestStall(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{rtt: 20 * time.Millisecond})
	i.RequestOncePerTrip()
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	requested := 0
	pass := func(d time.Duration) int {
		requests := r.requests(i, d)
		requested += requests
		return requests
	}
	frame := func() [][]byte {
		p.Next()
		return p.Packets(12_000)
	}
	whole := func() {
		for _, packet := range frame() {
			p.Send(r.now, packet)
			pass(time.Millisecond)
		}
		pass(21 * time.Millisecond)
	}
	for range 5 {
		whole()
	}
	if requested != 0 {
		t.Fatalf("%d requests without a loss", requested)
	}

	packets := frame()
	p.Send(r.now, packets[:5]...)
	if n := pass(60 * time.Millisecond); n != 0 {
		t.Errorf("%d requests during a stall", n)
	}
	for _, packet := range packets[5:] {
		p.Send(r.now, packet)
	}
	if n := pass(20 * time.Millisecond); n != 0 {
		t.Errorf("%d requests after a stall", n)
	}

	// The next frame shows that the end of a frame is lost.
	packets = frame()
	lost := packets[len(packets)-2:]
	p.Send(r.now, packets[:len(packets)-2]...)
	if n := pass(33 * time.Millisecond); n != 0 {
		t.Errorf("%d requests before the next frame", n)
	}
	p.Send(r.now, frame()...)
	if n := pass(settleTime + 2*minStep); n != len(lost) {
		t.Errorf("%d requests after the next frame, expected %d", n, len(lost))
	}
	p.Repair(r.now, lost...)

	// No frame follows.
	packets = frame()
	p.Send(r.now, packets[:len(packets)-1]...)
	pass(maxStall - 2*time.Millisecond)
	before := requested
	pass(4 * time.Millisecond)
	if n := requested - before; n != 1 || before != len(lost) {
		t.Errorf("%d requests after %v, and %d before", n, maxStall, before-len(lost))
	}
}

// TestStallOfTwoStreams loses the end of a frame before a silence. The first packet after the silence belongs to
// another stream: the lost packets are requested when the packets of a stall would have arrived.
func TestStallOfTwoStreams(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{rtt: 20 * time.Millisecond})
	i.RequestOncePerTrip()
	p, other := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric)
	p.Next()
	packets := p.Packets(12_000)
	p.Send(r.now, packets[:len(packets)-2]...)
	if n := r.requests(i, 40*time.Millisecond); n != 0 {
		t.Errorf("%d requests during a silence", n)
	}
	other.Next()
	other.Send(r.now, other.Packets(1000)...)
	if n := r.requests(i, settleTime-time.Millisecond); n != 0 {
		t.Errorf("%d requests while packets of a stall may arrive", n)
	}
	if n := r.requests(i, time.Millisecond); n != 2 {
		t.Errorf("%d requests after the silence, expected 2", n)
	}
}

// TestStallOfTheHost runs the searches of a busy host late: packets arrive at once every 16 ms, and each search runs
// 10 ms after it is due. Lost packets are requested all the same.
func TestStallOfTheHost(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{rtt: 20 * time.Millisecond})
	i.RequestOncePerTrip()
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	requested := 0
	for range 20 {
		p.Next()
		packets := p.Packets(12_000)
		p.Send(r.now, packets[:3]...)
		p.Send(r.now, packets[4:]...)
		r.now = r.now.Add(settleTime + 10*time.Millisecond)
		compounds, _ := i.Step(r.now)
		for _, compound := range compounds {
			for _, packet := range compound {
				if nack, ok := packet.(*rtcp.TransportLayerNack); ok {
					requested += len(nack.Nacks)
				}
			}
		}
		p.Repair(r.now, packets[3])
		r.now = r.now.Add(time.Millisecond)
	}
	if requested != 20 {
		t.Errorf("%d packets are requested, expected 20", requested)
	}
}
