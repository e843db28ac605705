package egress

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// reportByStream sets the peer's agreement on RFC 8888 reports, independent of the numbers it agrees on for its own
// packets.
func (p *fakePeer) reportByStream(agreed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byStream = agreed
}

// byStream makes the receiver behind the link report by RFC 8888 from now on.
func (l *downlink) byStream() {
	l.to.peer.reportByStream(true)
	l.streams = feedback.NewCongestionRecorder(feedback.DefaultConfig().Transport, 5)
}

func (l *downlink) record(p arrivingPacket) {
	if l.streams != nil {
		codepoint := p.ecn
		if l.clears {
			codepoint = ecn.NotECT
		}
		l.streams.Received(p.SSRC, p.SequenceNumber, p.size, codepoint, p.at)
		return
	}
	l.recorder.Received(p.number, p.size, p.at)
}

func (l *downlink) reportDue() time.Time {
	if l.streams != nil {
		return l.streams.Next()
	}
	return l.recorder.Next()
}

func (l *downlink) reportsDue(now time.Time) [][]byte {
	if l.streams == nil {
		return reportsOf(l.recorder, now)
	}
	return streamReports(l.streams, now)
}

// streamReports returns the RFC 8888 reports that are due.
func streamReports(recorder *feedback.CongestionRecorder, now time.Time) (reports [][]byte) {
	for report := recorder.AppendReports(nil, now); len(report) > 0; report = recorder.AppendReports(nil, now) {
		reports = append(reports, report)
	}
	return reports
}

// outcomeOf is the outcome of an estimate on a link.
type outcomeOf struct {
	reached          time.Duration // time at which the estimate was 80 % of the link
	mean, sent       float64       // of the estimate and of what was sent, in bit/s
	p95, rtt         time.Duration
	loss             float64
	measured, probes uint64 // clusters that yielded a rate, and packets of padding
}

// estimateOn runs a conference for 15 s over a link with more media than the link carries and a share of lost packets.
func estimateOn(t *testing.T, link, loss float64, byStream bool) outcomeOf {
	t.Helper()
	c := newConference(t, link, nil)
	if byStream {
		c.link.byStream()
	}
	c.receiver.Want(volumetric.Bitrate(1.5 * link))
	if loss > 0 {
		c.link.loses = func(uint16) bool { return c.random.Float64() < loss }
	}
	var o outcomeOf
	begun := c.now
	c.frames(5*time.Second, 1.5*link, func(p Path) {
		if o.reached == 0 && float64(p.Estimate) >= 0.8*link {
			o.reached = c.now.Sub(begun)
		}
	})
	c.link.queued = nil
	n := 0.0
	c.frames(10*time.Second, 1.5*link, func(p Path) {
		o.mean += float64(p.Estimate)
		o.sent += float64(p.Sent)
		n++
	})
	o.mean, o.sent = o.mean/n, o.sent/n
	path, stats := c.receiver.Path(), c.engine.Stats()
	o.p95, o.rtt, o.loss, o.measured = c.link.p95(), path.RTT, path.Loss, stats.ProbesMeasured
	o.probes = stats.Sent.Probe.Packets
	if stats.MalformedRTCP > 0 || stats.TransportDropped > 0 || !path.Known {
		t.Errorf("%d malformed reports, %d dropped, the path is %+v", stats.MalformedRTCP, stats.TransportDropped, path)
	}
	return o
}

// TestBothFormsOfFeedbackGiveTheSameEstimate runs the same links with transport-wide feedback and with RFC 8888, whose
// times are four times as coarse. Estimates, queues, losses and round trips are the same within a few per cent or
// milliseconds.
func TestBothFormsOfFeedbackGiveTheSameEstimate(t *testing.T) {
	race.SkipSequential(t)
	for _, test := range []struct {
		name       string
		link, loss float64
	}{
		{"5 Mbit/s", 5e6, 0},
		{"20 Mbit/s", 20e6, 0},
		{"20 Mbit/s, 2 % lost", 20e6, 0.02},
		{"50 Mbit/s", 50e6, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			numbers, streams := estimateOn(t, test.link, test.loss, false), estimateOn(t, test.link, test.loss, true)
			t.Logf("transport-wide: %+v", numbers)
			t.Logf("RFC 8888:       %+v", streams)
			for _, pair := range []struct {
				what   string
				a, b   float64
				within float64
			}{
				{"estimate", numbers.mean, streams.mean, 0.05 * numbers.mean},
				{"rate sent", numbers.sent, streams.sent, 0.05 * numbers.sent},
				{"loss", numbers.loss, streams.loss, 0.01},
				{"p95 queue in ms", milliseconds(numbers.p95), milliseconds(streams.p95), 12},
				{"round trip in ms", milliseconds(numbers.rtt), milliseconds(streams.rtt), 10},
			} {
				if math.Abs(pair.a-pair.b) > pair.within {
					t.Errorf("%s: %v by transport-wide feedback, %v by RFC 8888", pair.what, pair.a, pair.b)
				}
			}
			if streams.reached == 0 || streams.reached > numbers.reached+500*time.Millisecond ||
				streams.measured == 0 || streams.probes == 0 {
				t.Errorf("80 %% reached after %v by RFC 8888, %v by transport-wide feedback; %d probes with %d packets",
					streams.reached, numbers.reached, streams.measured, streams.probes)
			}
		})
	}
}

// TestStateOfL4S checks that the state of L4S is published and that fallbacks are counted. The path clears the ECN
// field.
func TestStateOfL4S(t *testing.T) {
	for controller, want := range map[string]congestion.L4SState{
		congestion.ControllerGCC: congestion.L4SOff, congestion.ControllerAuto: congestion.L4SFailed,
	} {
		c := newConference(t, 20e6, func(cfg *rigConfig) { cfg.Congestion.Controller = controller })
		c.link.byStream()
		c.link.clears = true
		c.frames(time.Second, 5e6, nil)
		var fallbacks [congestion.Fallbacks]uint64
		if want == congestion.L4SFailed {
			fallbacks[congestion.Bleached] = 1
		}
		path, got := c.receiver.Path(), c.engine.Stats().ECNFallbacks
		if path.L4S != want || path.Alpha != 0 || got != fallbacks {
			t.Errorf("%s: L4S is %v with α %v, fallbacks are %v, expected %v and %v", controller, path.L4S, path.Alpha,
				got, want, fallbacks)
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// TestEstimateRestartsWithAnotherForm switches from transport-wide feedback to RFC 8888 and back.
func TestEstimateRestartsWithAnotherForm(t *testing.T) {
	c := newConference(t, 20e6, nil)
	c.frames(time.Second, 5e6, nil)
	for _, byStream := range []bool{true, false} {
		before := c.engine.Stats()
		c.link.streams = nil
		if c.peer.reportByStream(byStream); byStream {
			c.link.byStream()
		}
		c.link.arriving = nil
		c.frames(2*time.Second, 5e6, nil)
		after := c.engine.Stats()
		received := after.TransportReceived - before.TransportReceived
		if path := c.receiver.Path(); !path.Known || path.Loss > 0.01 || received < 500 ||
			after.TransportReports == before.TransportReports {
			t.Errorf("by stream: %v, %d packets were reported, the path is %+v", byStream, received, path)
		}
		if after.MalformedRTCP > 0 {
			t.Errorf("%d reports count as malformed", after.MalformedRTCP)
		}
	}
}

// TestAudioAndRetransmissionsAreReportedByStream sends video, audio and retransmissions. Each packet is identified by
// its SSRC and number, and has no extension.
func TestAudioAndRetransmissionsAreReportedByStream(t *testing.T) {
	r := newRig(t, withoutProbes)
	i := r.ingress(&fakePeer{})
	video, speech := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEOpus)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.reportByStream(true)
	if path := s.receiver.Path(); !path.Awaited || path.Estimate == 0 {
		t.Errorf("before the first packet the path is %+v, expected the first estimate", path)
	}
	s.slot.Select(video.track, 1, r.now)
	sound := newFakeOutlet(s.peer, 1020)
	s.receiver.AddSlot(sound, volumetric.KindAudio).Select(speech.track, 3, r.now)
	r.run()
	recorder := feedback.NewCongestionRecorder(feedback.DefaultConfig().Transport, 5)
	sent, lost, ssrcs := 0, 0, map[uint32]int{}
	take := func() {
		s.peer.mu.Lock()
		defer s.peer.mu.Unlock()
		for _, p := range s.peer.flushed {
			if p.Extension || len(p.Extensions) > 0 {
				t.Fatalf("a packet has an extension: %v", p.Header)
			}
			sent++
			if ssrcs[p.SSRC]++; p.SSRC == 1000 && ssrcs[p.SSRC]%10 == 0 {
				lost++
				continue
			}
			recorder.Received(p.SSRC, p.SequenceNumber, 1224, ecn.NotECT, r.now)
		}
		s.peer.flushed = nil
	}
	for frame := range 10 {
		video.Next()
		video.Send(r.now, video.Packets(51*1144)...)
		speech.Send(r.now, speech.Packet([]byte("opus"), false))
		r.run()
		r.now = r.now.Add(20 * time.Millisecond)
		first := s.outlet.sent()[0].SequenceNumber
		s.nack(t, r.now, first+uint16(10*frame))
		r.run()
		take()
		r.now = r.now.Add(20 * time.Millisecond)
		for _, report := range streamReports(recorder, r.now) {
			s.receiver.RTCP(report, r.now)
		}
		r.run()
	}
	r.now = r.now.Add(300 * time.Millisecond)
	for _, report := range streamReports(recorder, r.now) {
		s.receiver.RTCP(report, r.now)
	}
	r.pass(time.Second)
	stats := r.engine.Stats()
	if ssrcs[1000] != 510 || ssrcs[1001] != 10 || ssrcs[1020] != 10 {
		t.Fatalf("packets by SSRC: %v", ssrcs)
	}
	// The last packet was lost and is not in any report.
	if stats.TransportReceived != uint64(sent-lost) || stats.TransportLost != uint64(lost-1) ||
		!s.receiver.Path().Known {
		t.Errorf("%d packets count as received and %d as lost, expected %d and %d; %+v", stats.TransportReceived,
			stats.TransportLost, sent-lost, lost-1, s.receiver.Path())
	}
}

// TestBadReportsAreCounted reports marks of packets that left without ECT, packets of an unknown stream, and packets
// that were never sent. Marks and unknown packets are ignored.
func TestBadReportsAreCounted(t *testing.T) {
	r := newRig(t, func(c *rigConfig) {
		withoutProbes(c)
		c.Congestion.Controller = congestion.ControllerGCC
	})
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.reportByStream(true)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(3*1144)...)
	r.run()
	first := s.outlet.sent()[0].SequenceNumber
	marked := feedback.PacketArrival{Received: true, ECN: ecn.CE}
	report := feedback.CongestionReport{Streams: []feedback.StreamReport{
		{SSRC: 4711, Packets: []feedback.PacketArrival{marked, marked}},
		// Two that were sent, one that is lost, and one more.
		{SSRC: 1000, Begin: first, Packets: []feedback.PacketArrival{marked, marked, {}, marked}},
	}}
	packet, err := report.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.receiver.RTCP(packet, r.now)
	r.pass(HousekeepingInterval)
	stats := r.engine.Stats()
	if stats.TransportReceived != 2 || stats.TransportLost != 1 || stats.TransportFalseMarks != 2 ||
		stats.TransportUnmatched != 3 || stats.MalformedRTCP != 0 {
		t.Errorf("%d received, %d lost, %d false marks, %d unmatched, %d malformed, expected 2, 1, 2, 3 and none",
			stats.TransportReceived, stats.TransportLost, stats.TransportFalseMarks, stats.TransportUnmatched,
			stats.MalformedRTCP)
	}
	if congested := s.receiver.path.sender.Stats().Congested; congested != 0 {
		t.Errorf("the estimator has seen %d marks, expected none", congested)
	}
}

// TestReportsOfTheOtherFormAreIgnored sends transport-wide feedback if RFC 8888 is agreed, and vice versa.
func TestReportsOfTheOtherFormAreIgnored(t *testing.T) {
	for _, byStream := range []bool{true, false} {
		r := newRig(t, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.subscribe(1000, volumetric.KindVideo)
		s.peer.agree(testExtension)
		s.peer.reportByStream(byStream)
		s.slot.Select(p.track, 1, r.now)
		r.run()
		p.Next()
		p.Send(r.now, p.Packets(1144)...)
		r.run()
		numbers := feedback.CongestionReport{Streams: []feedback.StreamReport{{SSRC: 1000,
			Packets: make([]feedback.PacketArrival, 9)}}}
		report, err := numbers.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if byStream {
			report = hostileReport(0, 24)
		}
		s.receiver.RTCP(report, r.now)
		r.pass(time.Second)
		if stats := r.engine.Stats(); stats.TransportReports+stats.MalformedRTCP+stats.TransportDropped > 0 ||
			s.receiver.Path().Known {
			t.Errorf("by stream: %v, %d reports were read, %d malformed", byStream, stats.TransportReports,
				stats.MalformedRTCP)
		}
	}
}
