package egress

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// expectAwaited fails unless reports of the receiver are awaited with that estimate. An estimate of 0 means that none
// are awaited.
func (c *conference) expectAwaited(when string, estimate congestion.Bitrate) {
	c.t.Helper()
	if p := c.receiver.Path(); p.Known || p.Awaited != (estimate > 0) || p.Estimate != estimate {
		c.t.Errorf("%s the path is %+v, expected to await reports with an estimate of %d", when, p, estimate)
	}
}

// TestReportsAreAwaited checks that reports are awaited from the peer's agreement until a second after the first
// packet.
func TestReportsAreAwaited(t *testing.T) {
	c := newConference(t, 20e6, nil)
	c.expectAwaited("before the first packet", 2e6)
	c.receiver.SetLimits(congestion.Limits{Min: 5e6})
	c.expectAwaited("with a least estimate", 5e6)
	c.receiver.SetLimits(congestion.Limits{Max: 1e6})
	c.expectAwaited("with a largest estimate", 1e6)
	c.receiver.SetLimits(congestion.Limits{Start: 8e6})
	c.expectAwaited("with a start rate", 8e6)
	c.receiver.SetLimits(congestion.Limits{Start: 1})
	c.expectAwaited("with a start rate below the least", 500e3)
	c.receiver.SetLimits(congestion.Limits{})
	c.peer.agree(maxExtension + 1)
	c.expectAwaited("with numbers that have no room", 0)
	c.peer.agree(0)
	c.expectAwaited("without numbers", 0)
	c.peer.agree(testExtension)
	c.pass(2 * time.Second)
	c.expectAwaited("long before the first packet", 2e6)
	frame := func() {
		c.publisher.Next()
		c.publisher.Send(c.now, c.publisher.Packets(5*1144)...)
		c.ticks(frameInterval)
	}
	begun := c.now
	for c.now.Sub(begun) < firstReport-HousekeepingInterval {
		frame()
		c.expectAwaited("after the first packet", 2e6)
	}
	for c.now.Sub(begun) < firstReport+2*HousekeepingInterval {
		frame()
	}
	c.expectAwaited("a second after the first packet", 0)
	// A later report counts all the same.
	c.frames(500*time.Millisecond, 2e6, nil)
	if p := c.receiver.Path(); !p.Known || p.Awaited {
		t.Errorf("the path is %+v, expected it to be known", p)
	}
}

// TestStartRateOfAReceiver checks that packets before the first report are sent at the rate that the receiver named,
// and that a later rate has no effect.
func TestStartRateOfAReceiver(t *testing.T) {
	c := newConference(t, 20e6, withoutProbes)
	c.link.deaf = true
	c.receiver.SetLimits(congestion.Limits{Start: 6e6})
	c.frames(300*time.Millisecond, 30e6, func(p Path) {
		if p.Known || p.Estimate != 6e6 {
			t.Fatalf("the path is %+v, expected to begin with 6 Mbit/s", p)
		}
	})
	c.link.deaf = false
	c.frames(2*time.Second, 5e6, nil)
	before := c.receiver.Path().Estimate
	c.receiver.SetLimits(congestion.Limits{Start: 500e3})
	c.frames(HousekeepingInterval+frameInterval, 5e6, nil)
	if p := c.receiver.Path(); !p.Known || p.Estimate < before {
		t.Errorf("the path is %+v after another start rate was named, expected %d or more", p, before)
	}
}

// TestFirstProbesNeedVideo begins with only audio, or with very little video. When there is video, probes find the
// link's rate.
func TestFirstProbesNeedVideo(t *testing.T) {
	for name, test := range map[string]struct {
		audio time.Duration
		video float64 // bit/s
	}{
		"video at the start rate": {0, 2e6}, "little video": {0, 50e3}, "audio for a second": {time.Second, 2e6},
		"audio for a minute": {time.Minute, 50e3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPacedRig(t, pacing.Default, nil)
			ingress := r.ingress(&fakePeer{})
			voice, body := r.publish(ingress, 30, volumetric.MIMEOpus),
				r.publish(ingress, 10, volumetric.MIMEVolumetric)
			s := r.subscribe(1000, volumetric.KindVideo)
			link := r.connect(s, 50e6)
			audio := s.receiver.AddSlot(newFakeOutlet(s.peer, 2000), volumetric.KindAudio)
			audio.Select(voice.track, 1, r.now)
			s.slot.Select(body.track, 2, r.now)
			s.receiver.Want(40e6)
			r.run()
			speak := func() {
				voice.Timestamp += 960
				voice.Send(r.now, voice.Packet(make([]byte, 100), false))
			}
			for end := r.now.Add(test.audio); r.now.Before(end); {
				speak()
				link.pass(20 * time.Millisecond)
			}
			if n := r.engine.Stats().Probes; n > 0 {
				t.Errorf("%d probes before there was video", n)
			}
			for begun := r.now; s.receiver.Path().Estimate < 20e6; {
				if r.now.Sub(begun) > 500*time.Millisecond {
					t.Fatalf("the estimate is %d after %v of video, expected 20 Mbit/s", s.receiver.Path().Estimate,
						r.now.Sub(begun))
				}
				speak()
				body.Next()
				body.Send(r.now, body.Packets(max(int(test.video/30/8), 200))...)
				link.pass(frameInterval)
			}
			if stats := r.engine.Stats(); stats.ProbesMeasured < 2 {
				t.Errorf("%d of %d probes were measured", stats.ProbesMeasured, stats.Probes)
			}
		})
	}
}
