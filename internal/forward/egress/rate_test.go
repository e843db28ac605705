package egress

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// expectRate checks that a track's rate is within 3 % of want in bit/s, or unknown if want is 0.
func expectRate(t *testing.T, p *publisher, want float64) {
	t.Helper()
	rate, ok := p.track.Rate()
	if got := float64(rate); ok != (want > 0) || got < 0.97*want || got > 1.03*want {
		t.Errorf("the rate is %.0f (%v), expected %.0f", got, ok, want)
	}
}

// TestRateOverWholeFrames measures frames that arrive in bursts, in part by halves, at several frame rates, as payload
// v1 and as a foreign codec.
func TestRateOverWholeFrames(t *testing.T) {
	for _, mime := range []string{volumetric.MIMEVolumetric, volumetric.MIMEOpaque} {
		for _, fps := range []int{5, 30, 90} {
			r := newRig(t, nil)
			p := r.publish(r.ingress(&fakePeer{}), 10, mime)
			expectRate(t, p, 0)
			interval := time.Second / time.Duration(fps)
			frame := func(packets int) {
				p.Next()
				all := p.Packets(packets * 1144)
				p.Send(r.now, all[:packets/2]...)
				r.now = r.now.Add(interval / 3)
				p.Send(r.now, all[packets/2:]...)
				r.now = r.now.Add(interval - interval/3)
			}
			frame(20)
			expectRate(t, p, 0)
			if frame(20); mime == volumetric.MIMEOpaque {
				// The first frame of a foreign track may lack its start.
				frame(20)
			}
			full := float64(20*1160*8) * float64(fps)
			expectRate(t, p, full)
			for range 3 * fps {
				frame(20)
				expectRate(t, p, full)
			}
			for range fps + fps/4 {
				frame(10)
			}
			expectRate(t, p, full/2)
			r.now = r.now.Add(time.Second - interval)
			expectRate(t, p, full/2)
			r.now = r.now.Add(2 * interval)
			expectRate(t, p, 0)
			frame(30)
			expectRate(t, p, 0)
			frame(30)
			frame(30)
			expectRate(t, p, full*1.5)
		}
	}
}

// TestRateLeavesParityOut sends half as many parity packets as source packets.
func TestRateLeavesParityOut(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	p.Parity = 10
	for range 40 {
		p.Next()
		p.Send(r.now, p.Packets(20*1144)...)
		r.now = r.now.Add(frameInterval)
	}
	expectRate(t, p, 20*1160*8*30)
	if packets := p.track.Stats().Packets; packets != 40*30 {
		t.Errorf("%d packets came, expected 1,200", packets)
	}
}
