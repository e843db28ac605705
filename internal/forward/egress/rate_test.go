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

// TestRateOfABurst checks that a track is not steady after a pause, since two frames that arrive together have any
// rate.
func TestRateOfABurst(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	steady := func(want time.Duration) {
		t.Helper()
		if got := p.track.Steady(); got != want {
			t.Errorf("the track has been steady for %v, expected %v", got, want)
		}
	}
	frames := func(n int, interval time.Duration) {
		for range n {
			p.Next()
			p.Send(r.now, p.Packets(20*1144)...)
			r.now = r.now.Add(interval)
		}
	}
	steady(0)
	r.now = r.now.Add(time.Millisecond)
	frames(60, frameInterval)
	steady(60 * frameInterval)
	// A pause of less than a second is no pause.
	r.now = r.now.Add(900 * time.Millisecond)
	frames(1, frameInterval)
	steady(61*frameInterval + 900*time.Millisecond)
	r.now = r.now.Add(time.Second)
	steady(0)
	frames(2, time.Microsecond)
	if rate, ok := p.track.Rate(); !ok || rate < 1e9 {
		t.Errorf("the rate of the burst is %v (%v), expected more than 1 Gbit/s", rate, ok)
	}
	steady(2 * time.Microsecond)
	frames(30, frameInterval)
	steady(2*time.Microsecond + 30*frameInterval)
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
