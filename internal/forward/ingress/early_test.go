package ingress

import (
	"bytes"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestEarlyPackets sends frames on a new connection before and after the track is bound. Frames that arrived within the
// deadline of repairs before the binding are complete and in order.
func TestEarlyPackets(t *testing.T) {
	const deadline = time.Minute
	r := newRig(t, func(c *rigConfig) { c.NACK.Deadline = deadline })
	i := r.ingress(&fakePeer{})
	p := forwardtest.NewPublisher(t, i, 40)
	send := func() [][]byte {
		p.Next()
		packets := p.Packets(3000)
		p.Send(r.now, packets...)
		return packets
	}
	send()
	r.now = r.now.Add(deadline)
	want := send()
	r.now = r.now.Add(time.Millisecond)
	made := r.tracks.New(track.Config{
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
	})
	reader := follow(made)
	i.Bind(p.SSRC, p.RTX, made)
	i.Step(r.now)
	want = append(want, send()...)
	got := reader.read(t)
	if len(got) != len(want) {
		t.Fatalf("%d packets, expected %d", len(got), len(want))
	}
	for n := range want {
		if !bytes.Equal(got[n], want[n][rtpHeader:]) {
			t.Fatalf("packet %d is another one", n)
		}
	}
	if n := len(i.early.packets); n != 0 {
		t.Errorf("%d packets are kept after the binding", n)
	}
}

// TestEarlyPacketsAreBounded sends more packets of an unknown SSRC than are kept, one packet when those are too old,
// and one packet long after the first binding.
func TestEarlyPacketsAreBounded(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	p := forwardtest.NewPublisher(t, i, 60)
	for range maxEarly + 10 {
		p.Next()
		p.Send(r.now, p.Packets(100)...)
	}
	if n := len(i.early.packets); n != maxEarly {
		t.Errorf("%d packets are kept, expected %d", n, maxEarly)
	}
	r.now = r.now.Add(r.cfg.NACK.Deadline + 1)
	p.Send(r.now, p.Packets(100)...)
	if n := len(i.early.packets); n != 1 {
		t.Errorf("%d packets are kept when the others are too old, expected 1", n)
	}
	r.publish(i, 40, volumetric.MIMEVolumetric)
	r.now = r.now.Add(r.cfg.ReportInterval)
	i.Step(r.now)
	if n := len(i.early.packets); n != 0 {
		t.Errorf("%d packets are kept with the first report", n)
	}
	p.Send(r.now, p.Packets(100)...)
	if n := len(i.early.packets); n != 0 {
		t.Errorf("%d packets are kept long after the first binding", n)
	}
}
