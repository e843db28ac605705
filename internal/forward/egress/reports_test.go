package egress

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// report passes a sender report to an ingress: the track's current timestamp has the given capture time.
func (p *publisher) report(now, capture time.Time) {
	p.T.Helper()
	raw, err := (&rtcp.SenderReport{SSRC: p.SSRC, NTPTime: payload.NTP64(capture), RTPTime: p.Timestamp}).Marshal()
	if err != nil {
		p.T.Fatal(err)
	}
	p.ingress.RTCP(raw, now)
}

// senderReports returns the sender reports among packets.
func senderReports(packets []rtcp.Packet) []*rtcp.SenderReport {
	var reports []*rtcp.SenderReport
	for _, p := range packets {
		if report, ok := p.(*rtcp.SenderReport); ok {
			reports = append(reports, report)
		}
	}
	return reports
}

// TestSenderReports compares the capture times in a slot's reports with the publisher's capture times. The publisher's
// clock is two hours ahead of the server's.
func TestSenderReports(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	frame := func() time.Time {
		r.now = r.now.Add(33333333 * time.Nanosecond)
		p.Next()
		p.Send(r.now, p.Packets(2000)...)
		r.run()
		return r.now.Add(2 * time.Hour)
	}
	frame()
	s.slot.Select(p.track, 1, r.now)
	r.run()
	for range 10 {
		frame()
	}
	if reports := senderReports(s.peer.take()); len(reports) != 0 {
		t.Fatalf("%d reports before the publisher sent one", len(reports))
	}
	captured := frame()
	p.report(r.now, captured)
	sent := s.outlet.sent()
	timestamp := sent[len(sent)-1].Timestamp
	for range 70 {
		frame()
	}
	reports := senderReports(s.peer.take())
	if len(reports) < 2 || len(reports) > 3 {
		t.Fatalf("%d reports within 2.3 s, expected one per second", len(reports))
	}
	for _, report := range reports {
		elapsed := payload.TimeFromNTP64(report.NTPTime).Sub(captured)
		ticks := time.Duration(int32(report.RTPTime-timestamp)) * time.Second / 90000
		if error := (elapsed - ticks).Abs(); error > time.Millisecond {
			t.Errorf("report maps %v after the frame to %v, off by %v", elapsed, ticks, error)
		}
		if report.SSRC != 1000 || report.PacketCount == 0 || report.OctetCount == 0 {
			t.Errorf("report is %v", report)
		}
	}
}

// TestReportsAtOnce checks that a report is sent with the first frame after a switch.
func TestReportsAtOnce(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	a, b := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric)
	a.report(r.now, r.now)
	b.report(r.now, r.now.Add(-time.Hour))
	s := r.subscribe(1000, volumetric.KindVideo)
	for n, test := range []struct {
		p     *publisher
		group uint64
		want  int
	}{{a, 1, 1}, {b, 1, 0}, {a, 2, 1}, {nil, 0, 0}, {b, 2, 0}, {b, 3, 1}} {
		if test.p == nil {
			s.slot.Select(nil, 0, r.now)
		} else {
			s.slot.Select(test.p.track, test.group, r.now)
		}
		r.run()
		a.Next()
		b.Next()
		a.Send(r.now, a.Packets(100)...)
		b.Send(r.now, b.Packets(100)...)
		r.run()
		if got := len(senderReports(s.peer.take())); got != test.want {
			t.Errorf("%d reports after selection %d, expected %d", got, n, test.want)
		}
		r.now = r.now.Add(10 * time.Millisecond)
	}
}

func TestReportsOfManySlots(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	p.report(r.now, r.now)
	s := r.subscribe(1000, volumetric.KindVideo)
	for n := range 100 {
		s.receiver.AddSlot(newFakeOutlet(s.peer, uint32(2000+2*n)), volumetric.KindVideo).Select(p.track, 1, r.now)
	}
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(100)...)
	r.run()
	s.peer.take()
	r.pass(time.Second + HousekeepingInterval)
	total := 0
	for _, compound := range s.peer.compounds {
		size := 0
		for _, packet := range compound {
			size += packet.MarshalSize()
			total++
		}
		if size > 1200 {
			t.Errorf("a compound has %d bytes, expected at most 1200", size)
		}
	}
	if total != 100 {
		t.Errorf("%d slots were reported, expected 100", total)
	}
}

// TestRoundTripByReports answers a sender report as a receiver does, 30 ms later.
func TestRoundTripByReports(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	p.report(r.now, r.now.Add(-5*time.Hour))
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(100)...)
	r.run()
	reports := senderReports(s.peer.take())
	if len(reports) != 1 {
		t.Fatalf("%d reports, expected 1", len(reports))
	}
	r.now = r.now.Add(130 * time.Millisecond)
	const delay = 65536 / 10
	s.rtcp(t, r.now, &rtcp.ReceiverReport{SSRC: 9, Reports: []rtcp.ReceptionReport{
		{SSRC: 555, FractionLost: 255},
		{SSRC: 1000, FractionLost: 64, Jitter: 900, LastSenderReport: uint32(reports[0].NTPTime >> 16), Delay: delay},
	}})
	r.run()
	if rtt := s.receiver.path.rtt(); (rtt - 30*time.Millisecond).Abs() > time.Millisecond {
		t.Errorf("round trip is %v, expected 30 ms", rtt)
	}
	if stats := s.slot.Stats(); stats.FractionLost != 0.25 || stats.Jitter != 10*time.Millisecond {
		t.Errorf("the receiver's report says %+v, expected a loss of 0.25 and 10 ms of jitter", stats)
	}
	s.peer.rtt = 7 * time.Millisecond
	if rtt := s.receiver.path.rtt(); rtt != 7*time.Millisecond {
		t.Errorf("round trip is %v, expected that of the connection", rtt)
	}
}

// TestReferenceTimes checks that a receiver learns the round-trip time from the reply to its reference time, however
// many it sends.
func TestReferenceTimes(t *testing.T) {
	r := newRig(t, nil)
	s := r.subscribe(1000, volumetric.KindVideo)
	report := &rtcp.ExtendedReport{SenderSSRC: 1, Reports: []rtcp.ReportBlock{
		&rtcp.ReceiverReferenceTimeReportBlock{NTPTimestamp: 0x0123_4567_89ab_cdef}}}
	replies := 0
	for range 20 {
		r.now = r.now.Add(10 * time.Millisecond)
		s.rtcp(t, r.now, report)
		for _, p := range s.peer.take() {
			reply, is := p.(*rtcp.ExtendedReport)
			if !is {
				continue
			}
			replies++
			block, is := reply.Reports[0].(*rtcp.DLRRReportBlock)
			if want := (rtcp.DLRRReport{SSRC: 1, LastRR: 0x4567_89ab}); reply.SenderSSRC != 1000 || !is ||
				len(block.Reports) != 1 || block.Reports[0] != want {
				t.Errorf("the reply is %v", reply)
			}
		}
	}
	if replies != 2 {
		t.Errorf("%d replies to 20 reference times in 0.2 s, expected 2", replies)
	}
}
