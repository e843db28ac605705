package egress

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
	"github.com/volsfu/volsfu/test/wait"
)

// conference is one publisher and one subscriber behind a link.
type conference struct {
	*rig
	publisher *publisher
	*subscriber
	link   *downlink
	random *rand.Rand
}

func newConference(t testing.TB, rate float64, change func(*rigConfig)) *conference {
	r := newPacedRig(t, pacing.Default, change)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	c := &conference{rig: r, publisher: p, subscriber: s, link: r.connect(s, rate), random: rand.New(rand.NewPCG(1, 1))}
	s.slot.Select(p.track, 1, r.now)
	r.run()
	return c
}

// frames publishes frames for a time. Their rate on the wire follows the estimate, as with an allocator, up to most. It
// calls each after each frame.
func (c *conference) frames(d time.Duration, most float64, each func(Path)) {
	for end := c.now.Add(d); c.now.Before(end); {
		path := c.receiver.Path()
		rate := float64(c.engine.cfg.Congestion.Limits().Start)
		if path.Known {
			rate = float64(path.Estimate)
		}
		rate = min(0.95*rate, most) * (0.9 + 0.2*c.random.Float64())
		packets := max(1, int(math.Round(rate/30/8/(1160+congestion.PacketOverhead))))
		c.publisher.Next()
		c.publisher.Send(c.now, c.publisher.Packets(packets*1144)...)
		c.link.pass(frameInterval)
		if each != nil {
			each(c.receiver.Path())
		}
	}
}

// TestEstimateFindsTheLink begins at 2 Mbit/s on a link of 20 Mbit/s, with media that adapts up to 30 Mbit/s.
func TestEstimateFindsTheLink(t *testing.T) {
	race.SkipSequential(t)
	const link = 20e6
	c := newConference(t, link, nil)
	c.receiver.Want(30e6)
	begun := c.now
	var reached time.Duration
	c.frames(5*time.Second, 30e6, func(p Path) {
		if reached == 0 && p.Estimate >= 0.8*link {
			reached = c.now.Sub(begun)
		}
	})
	if reached == 0 || reached > 2*time.Second {
		t.Errorf("the estimate reached 80 %% of the link after %v, expected within 2 s", reached)
	}
	c.link.queued = nil
	var least, sum float64
	least = link
	n := 0
	c.frames(10*time.Second, 30e6, func(p Path) {
		least = min(least, float64(p.Estimate))
		sum += float64(p.Sent)
		n++
	})
	slices.Sort(c.link.queued)
	p95 := c.link.queued[len(c.link.queued)*95/100]
	t.Logf("80 %% after %v, then %.1f Mbit/s or more, %.1f Mbit/s sent, p95 queue %v", reached, least/1e6,
		sum/float64(n)/1e6, p95)
	if least < 0.7*link || sum/float64(n) < 0.8*link || p95 > 30*time.Millisecond || c.link.dropped > 0 {
		t.Errorf("the estimate fell to %.1f Mbit/s, %.1f Mbit/s were sent, p95 queue %v, %d packets dropped", least/1e6,
			sum/float64(n)/1e6, p95, c.link.dropped)
	}
	stats := c.engine.Stats()
	if stats.DroppedBudget+stats.DroppedLate+stats.DroppedOverrun > 0 {
		t.Errorf("frames were dropped: %d, %d, %d", stats.DroppedBudget, stats.DroppedLate, stats.DroppedOverrun)
	}
	path := c.receiver.Path()
	if !path.Known || path.RTT < 20*time.Millisecond || path.RTT > 60*time.Millisecond || path.Loss != 0 ||
		path.Wanted != 30e6 || path.Acknowledged < 0.7*link {
		t.Errorf("the path is %+v", path)
	}
	if stats.Probes < 2 || stats.ProbesMeasured < 2 || stats.Sent.Probe.Packets == 0 {
		t.Errorf("%d probes were sent and %d measured, with %d packets of padding", stats.Probes, stats.ProbesMeasured,
			stats.Sent.Probe.Packets)
	}
}

// TestPublishersLossIsNotTheReceivers loses every tenth packet from the publisher for good, and none to the receivers.
// The paths of the receivers are as good as without the loss.
func TestPublishersLossIsNotTheReceivers(t *testing.T) {
	race.SkipSequential(t)
	c := newConference(t, 20e6, nil)
	c.receiver.Want(10e6)
	for range 150 {
		c.publisher.Next()
		for n, packet := range c.publisher.Packets(40 * 1144) {
			if n%10 != 3 {
				c.publisher.ingress.RTP(c.publisher.SSRC, packet, forwardtest.InfoAt(c.now))
			}
		}
		c.publisher.ingress.Flush()
		c.link.pass(frameInterval)
	}
	path := c.receiver.Path()
	if stats := c.engine.Stats(); stats.TransportLost > 0 || path.Loss > 0 || path.InherentLoss > 0.005 ||
		path.Estimate < 10e6 {
		t.Errorf("%d packets to the receiver count as lost, its path is %+v", stats.TransportLost, path)
	}
	// Losses on the receiver's path are counted.
	c.link.loses = func(number uint16) bool { return number%20 == 0 }
	c.frames(5*time.Second, 10e6, nil)
	if path := c.receiver.Path(); path.Loss < 0.03 || path.Loss > 0.07 {
		t.Errorf("the loss is %v, expected 0.05", path.Loss)
	}
}

// TestReceiversWithoutFeedback checks that receivers without transport-wide numbers, and with numbers but without
// reports, are sent everything without a limit.
func TestReceiversWithoutFeedback(t *testing.T) {
	for _, numbered := range []bool{false, true} {
		c := newConference(t, 100e6, nil)
		if !numbered {
			c.peer.agree(0)
		}
		for range 60 {
			c.publisher.Next()
			c.publisher.Send(c.now, c.publisher.Packets(100*1144)...)
			c.ticks(frameInterval)
		}
		path := c.receiver.Path()
		if path.Known || path.Estimate != 0 || (c.receiver.path.estimation != nil) != numbered {
			t.Errorf("numbered: %v, the path is %+v", numbered, path)
		}
		sent := 100 * (1160 + congestion.PacketOverhead) * 8 * 30
		if float64(path.Sent) < 0.9*float64(sent) || float64(path.Sent) > 1.1*float64(sent) {
			t.Errorf("numbered: %v, %d bit/s were sent, expected %d", numbered, path.Sent, sent)
		}
		if n := len(c.outlet.sent()); n != 60*100 {
			t.Errorf("numbered: %v, %d packets left, expected 6,000", numbered, n)
		}
	}
}

// TestEstimateEndsWithItsNumbers ends and resumes the peer's agreement on numbers.
func TestEstimateEndsWithItsNumbers(t *testing.T) {
	c := newConference(t, 20e6, nil)
	c.frames(time.Second, 5e6, nil)
	if !c.receiver.Path().Known {
		t.Fatal("no feedback has come")
	}
	c.peer.agree(0)
	c.publisher.Next()
	c.publisher.Send(c.now, c.publisher.Packets(100*1144)...)
	c.ticks(20 * time.Millisecond)
	if path := c.receiver.Path(); path.Known || path.Estimate != 0 || c.receiver.path.sender.Held() != 0 {
		t.Errorf("the path is %+v, %d packets are held", path, c.receiver.path.sender.Held())
	}
	c.peer.flushed = nil
	c.peer.agree(testExtension)
	c.frames(time.Second, 5e6, nil)
	if path := c.receiver.Path(); !path.Known {
		t.Errorf("the path is %+v", path)
	}
}

// TestLimitsOfReceivers lowers the maximum estimate, removes the limit, and sets the wanted rate.
func TestLimitsOfReceivers(t *testing.T) {
	c := newConference(t, 20e6, nil)
	c.receiver.SetLimits(congestion.Limits{Max: 4e6})
	c.frames(3*time.Second, 30e6, func(p Path) {
		if p.Estimate > 4e6 {
			t.Fatalf("the estimate is %d, expected 4 Mbit/s at most", p.Estimate)
		}
	})
	if p := c.receiver.Path(); p.Estimate < 3.9e6 {
		t.Errorf("the estimate is %d, expected 4 Mbit/s", p.Estimate)
	}
	c.receiver.SetLimits(congestion.Limits{})
	c.frames(5*time.Second, 30e6, nil)
	if p := c.receiver.Path(); p.Estimate < 14e6 {
		t.Errorf("the estimate is %d after the limit was lifted", p.Estimate)
	}
	c.receiver.SetLimits(congestion.Limits{Max: 300e3})
	c.frames(HousekeepingInterval+frameInterval, 300e3, nil)
	if p := c.receiver.Path(); p.Estimate != 300e3 {
		t.Errorf("the estimate is %d, expected 300 kbit/s, below the configured least", p.Estimate)
	}
}

// TestLimitsOfTheServerAlwaysHold checks that receivers may lower the maximum estimate, and raise the minimum up to the
// maximum.
func TestLimitsOfTheServerAlwaysHold(t *testing.T) {
	c := newConference(t, 100e6, func(cfg *rigConfig) { cfg.Congestion.Max = 10e6 })
	for _, test := range []struct{ limits, want congestion.Limits }{
		{congestion.Limits{}, congestion.Limits{Max: 10e6}},
		{congestion.Limits{Max: 50e6}, congestion.Limits{Max: 10e6}},
		{congestion.Limits{Min: 50e6}, congestion.Limits{Min: 10e6, Max: 10e6}},
		{congestion.Limits{Min: 50e6, Max: 80e6}, congestion.Limits{Min: 10e6, Max: 10e6}},
		{congestion.Limits{Min: 5e6, Max: 4e6}, congestion.Limits{Min: 4e6, Max: 4e6}},
		{congestion.Limits{Min: 5e6, Max: 8e6}, congestion.Limits{Min: 5e6, Max: 8e6}},
	} {
		c.receiver.SetLimits(test.limits)
		got := *c.receiver.path.limits.Load()
		if test.want.Min == 0 {
			test.want.Min = c.engine.cfg.Congestion.Limits().Min
		}
		if got.Min != test.want.Min || got.Max != test.want.Max || got.Validate() != nil {
			t.Errorf("%+v became %+v, expected %+v", test.limits, got, test.want)
		}
	}
	c.receiver.SetLimits(congestion.Limits{Min: 50e6, Max: 80e6})
	c.frames(3*time.Second, 30e6, func(p Path) {
		if p.Known && p.Estimate > 10e6 {
			t.Fatalf("the estimate is %d, expected 10 Mbit/s at most", p.Estimate)
		}
	})
	if p := c.receiver.Path(); p.Estimate != 10e6 {
		t.Errorf("the estimate is %d, expected 10 Mbit/s", p.Estimate)
	}
}

// TestSilenceLowersTheEstimate stops the reports. The estimate falls while packets continue, although nothing else
// happens to the writer.
func TestSilenceLowersTheEstimate(t *testing.T) {
	c := newConference(t, 20e6, nil)
	c.frames(3*time.Second, 10e6, nil)
	before := c.receiver.Path().Estimate
	c.link.deaf = true
	c.frames(1500*time.Millisecond, 10e6, nil)
	if p := c.receiver.Path(); p.Estimate > before/2 || c.engine.Stats().Silences == 0 {
		t.Errorf("the estimate is %d after 1.5 s of silence, %d before; %d silences", p.Estimate, before,
			c.engine.Stats().Silences)
	}
}

// TestAnyGoroutineMayAsk runs an engine with a receiver that reports every packet on arrival, while other goroutines
// read its path and change the wanted rate.
func TestAnyGoroutineMayAsk(t *testing.T) {
	r := live(t, func(c *rigConfig) { c.Writers = 2 })
	p := r.publish(r.engine.NewIngress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.agree(testExtension)
	s.slot.Select(p.track, 1, time.Now())
	wait.Until(t, "a writer follows", func() bool { return p.track.Followers() == 1 })
	done := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for n := congestion.Bitrate(1); ; n++ {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			s.receiver.Want(5e6 + n)
			s.receiver.SetLimits(congestion.Limits{Max: 20e6 + n})
			s.receiver.Path()
			s.receiver.ParityShare()
			p.track.Rate()
			r.engine.Paths(nil)
			r.engine.Stats()
		}
	})
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	wait.Until(t, "the estimate rises", func() bool {
		p.Next()
		p.Send(time.Now(), p.Packets(20*1144)...)
		for _, number := range s.peer.numbers(t, testExtension) {
			recorder.Received(uint16(number), 1224, time.Now())
		}
		for _, report := range reportsOf(recorder, time.Now()) {
			s.receiver.RTCP(report, time.Now())
		}
		time.Sleep(5 * time.Millisecond)
		rate, ok := p.track.Rate()
		path := s.receiver.Path()
		return ok && rate > 0 && path.Known && path.Estimate > congestion.DefaultConfig().Limits().Start &&
			path.Sent > 0
	})
	close(done)
	asking.Wait()
	if paths := r.engine.Paths(nil); len(paths) != 1 || !paths[0].Known {
		t.Errorf("the paths are %+v", paths)
	}
	s.receiver.Close()
	if paths := r.engine.Paths(nil); len(paths) != 0 {
		t.Errorf("the paths are %+v after the receiver was closed", paths)
	}
}
