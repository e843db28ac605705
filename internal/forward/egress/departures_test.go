package egress

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// testExtension is the identifier that the test's peers agree on.
const testExtension = 7

// withoutProbes disables probes, so that all packets are media.
func withoutProbes(c *rigConfig) { c.Congestion.Probe.Enabled = false }

// agree sets the negotiated identifier of the transport-wide sequence number.
func (p *fakePeer) agree(extension uint8) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extension = extension
}

// numbers returns the transport-wide sequence numbers of the packets sent since the last call, in order of queueing, -1
// for packets without a number.
func (p *fakePeer) numbers(t testing.TB, extension uint8) []int {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var numbers []int
	for _, packet := range p.flushed {
		raw, err := packet.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		number := -1
		if n, ok := feedback.TransportSequence(raw, extension); ok {
			number = int(n)
		} else if packet.Extension || len(packet.Extensions) > 0 {
			t.Errorf("a packet has an extension that is not negotiated: %v", packet.Header)
		}
		numbers = append(numbers, number)
	}
	p.flushed = nil
	return numbers
}

// expectNumbers expects that many packets with successive numbers after last, and returns the last number.
func expectNumbers(t testing.TB, numbers []int, count int, last uint16) uint16 {
	t.Helper()
	if len(numbers) != count {
		t.Fatalf("%d packets were sent, expected %d", len(numbers), count)
	}
	for n, number := range numbers {
		if last++; number != int(last) {
			t.Fatalf("packet %d has the number %d, expected %d", n, number, last)
		}
	}
	return last
}

// TestNumbersFollowEachOther sends video, audio and retransmissions on several slots of one receiver.
func TestNumbersFollowEachOther(t *testing.T) {
	r := newRig(t, withoutProbes)
	i := r.ingress(&fakePeer{})
	video, speech := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEOpus)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.agree(testExtension)
	s.slot.Select(video.track, 1, r.now)
	s.receiver.AddSlot(newFakeOutlet(s.peer, 1010), volumetric.KindVideo).Select(video.track, 2, r.now)
	s.receiver.AddSlot(newFakeOutlet(s.peer, 1020), volumetric.KindAudio).Select(speech.track, 3, r.now)
	unnumbered := r.subscribe(2000, volumetric.KindVideo)
	unnumbered.slot.Select(video.track, 1, r.now)
	r.run()
	var last uint16
	for frame := range 3 {
		video.Next()
		video.Send(r.now, video.Packets(50*1144)...)
		speech.Send(r.now, speech.Packet([]byte("opus"), false))
		r.run()
		numbers := s.peer.numbers(t, testExtension)
		if frame == 0 {
			last = uint16(numbers[0]) - 1
		}
		last = expectNumbers(t, numbers, 101, last)
		for n, number := range unnumbered.peer.numbers(t, testExtension) {
			if number >= 0 {
				t.Fatalf("packet %d has the number %d, but its receiver has not agreed on any", n, number)
			}
		}
		r.now = r.now.Add(20 * time.Millisecond)
		first := s.outlet.sent()[0].SequenceNumber
		s.nack(t, r.now, first+uint16(frame), first+uint16(frame)+10)
		r.run()
		last = expectNumbers(t, s.peer.numbers(t, testExtension), 2, last)
		unnumbered.nack(t, r.now, unnumbered.outlet.sent()[0].SequenceNumber)
	}
	if n := len(s.outlet.repaired()); n != 6 {
		t.Errorf("%d retransmissions, expected 6", n)
	}
	r.run()
	if n := len(unnumbered.outlet.repaired()); n == 0 {
		t.Error("expected a retransmission without a number")
	}
	unnumbered.peer.numbers(t, testExtension)
}

// TestNumbersFollowAgreement changes the agreement of the peers: the numbers continue with another identifier, and
// without an identifier packets have no extension.
func TestNumbersFollowAgreement(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribeAll(1, p)[0]
	send := func(extension uint8) []int {
		t.Helper()
		s.peer.agree(extension)
		p.Next()
		p.Send(r.now, p.Packets(5*1144)...)
		r.run()
		return s.peer.numbers(t, extension)
	}
	without := func(numbers []int) {
		t.Helper()
		for n, number := range numbers {
			if number != -1 {
				t.Errorf("packet %d has the number %d, expected none", n, number)
			}
		}
	}
	without(send(0))
	if s.receiver.path.departures != nil {
		t.Error("memory was taken for numbers that are not negotiated")
	}
	numbers := send(testExtension)
	last := expectNumbers(t, numbers, 5, uint16(numbers[0])-1)
	without(send(0))
	last = expectNumbers(t, send(testExtension+1), 5, last)
	without(send(15)) // a one-byte extension cannot have this identifier
	expectNumbers(t, send(14), 5, last)
}

// TestReportsOfReceivers lets a receiver report the packets that arrive, as a client does, on a path that loses every
// tenth packet.
func TestReportsOfReceivers(t *testing.T) {
	r := newRig(t, withoutProbes)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.agree(testExtension)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	sent, lost, reports := 0, 0, 0
	for range 30 {
		p.Next()
		p.Send(r.now, p.Packets(20*1144)...)
		r.run()
		numbers := s.peer.numbers(t, testExtension)
		for n, number := range numbers {
			if sent++; n%10 == 5 {
				lost++
				continue
			}
			recorder.Received(uint16(number), 1200, r.now)
		}
		r.pass(frameInterval)
		for _, report := range reportsOf(recorder, r.now) {
			reports++
			s.receiver.RTCP(report, r.now)
		}
	}
	r.pass(time.Second)
	for _, report := range reportsOf(recorder, r.now) {
		reports++
		s.receiver.RTCP(report, r.now)
	}
	r.pass(time.Second)
	stats := r.engine.Stats()
	if reports < 5 || stats.TransportReports != uint64(reports) {
		t.Errorf("%d reports were read, expected all %d, at least 5", stats.TransportReports, reports)
	}
	if stats.TransportReceived != uint64(sent-lost) || stats.TransportLost != uint64(lost) {
		t.Errorf("%d packets count as received and %d as lost, expected %d and %d", stats.TransportReceived,
			stats.TransportLost, sent-lost, lost)
	}
	if stats.MalformedRTCP != 0 || stats.TransportDropped != 0 {
		t.Errorf("%d reports count as malformed and %d as dropped, expected none", stats.MalformedRTCP,
			stats.TransportDropped)
	}
	if size := s.receiver.path.departures.history.Stats().Sent; size != uint64(sent) {
		t.Errorf("%d packets were numbered, expected %d", size, sent)
	}
}

// reportsOf returns the reports that are due.
func reportsOf(recorder *feedback.TransportRecorder, now time.Time) [][]byte {
	var reports [][]byte
	for {
		compound := recorder.AppendReports(nil, 1, 0, now)
		if len(compound) == 0 {
			return reports
		}
		for len(compound) > 0 {
			size := rtcpSize(compound)
			reports, compound = append(reports, compound[:size]), compound[size:]
		}
	}
}

// hostileReport returns a report of that many bytes about the numbers from base on. It is valid if it has 24 bytes.
func hostileReport(base uint16, size int) []byte {
	report := make([]byte, size)
	report[0], report[1] = 0x8f, 205
	binary.BigEndian.PutUint16(report[2:], uint16(size/4-1))
	binary.BigEndian.PutUint16(report[12:], base)
	binary.BigEndian.PutUint16(report[14:], 8191)
	binary.BigEndian.PutUint16(report[20:], 8191) // a run of 8191 lost packets
	return report
}

// TestReportsAreBounded makes reports faster than the writer reads them.
func TestReportsAreBounded(t *testing.T) {
	r := newRig(t, withoutProbes)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.receiver.RTCP(hostileReport(0, 24), r.now)
	if n := len(s.receiver.reports.waiting); n != 0 {
		t.Fatalf("%d bytes of a report wait, although nothing has a number", n)
	}
	s.peer.agree(testExtension)
	s.receiver.RTCP(hostileReport(0, 24), r.now) // before any packet was sent
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(20*1144)...)
	r.pass(HousekeepingInterval)
	first := s.peer.numbers(t, testExtension)[0]
	const reports = 20_000
	var most int
	for n := range reports {
		s.receiver.Arrivals(hostileReport(uint16(first+n-reports+1), 24), r.now)
		most = max(most, len(s.receiver.reports.waiting))
	}
	if most > maxReportBytes || cap(s.receiver.reports.waiting) > 2*maxReportBytes {
		t.Errorf("%d bytes of reports waited, in %d of memory, expected at most %d", most,
			cap(s.receiver.reports.waiting), maxReportBytes)
	}
	r.pass(time.Second)
	stats := r.engine.Stats()
	read := stats.TransportReports
	if read+stats.TransportDropped != reports || read < maxReportBytes/2/32 || read > maxReportBytes/32 {
		t.Errorf("%d reports were read and %d dropped, expected %d together", read, stats.TransportDropped, reports)
	}
	// The last report, which is kept, covers the first packet and all later ones. Each counts once.
	if stats.TransportLost != 20 || stats.TransportReceived != 0 {
		t.Errorf("%d packets count as lost and %d as received, expected 20 and none", stats.TransportLost,
			stats.TransportReceived)
	}
}

// TestPacketsLeaveWithTheCodepointOfTheEstimator checks that the peer is told the codepoint when estimation starts,
// after reports, and when estimation stops.
func TestPacketsLeaveWithTheCodepointOfTheEstimator(t *testing.T) {
	r := newRig(t, withoutProbes)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.agree(testExtension)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	told := func(what string) {
		t.Helper()
		p.Next()
		p.Send(r.now, p.Packets(2*1144)...)
		r.run()
		s.peer.mu.Lock()
		defer s.peer.mu.Unlock()
		if want := s.receiver.path.sender.Stats().ECN; s.peer.codepoint != want {
			t.Errorf("%s: packets leave as %v, expected %v", what, s.peer.codepoint, want)
		}
		s.peer.codepoint = ecn.CE
	}
	s.peer.SetECN(ecn.CE)
	told("estimation starts")
	s.receiver.RTCP(hostileReport(0, 24), r.now)
	told("a report has arrived")
	r.pass(HousekeepingInterval)
	told("a step was due")
	s.peer.agree(0)
	told("estimation stops")
}

// TestReportsAreLimited sends 1,500 reports per second, which the writer reads at once: it reads 1,000 per second.
func TestReportsAreLimited(t *testing.T) {
	r := newRig(t, withoutProbes)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.agree(testExtension)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(20*1144)...)
	r.run()
	const perSecond, seconds = 1500, 3
	begin := r.now
	for n := range perSecond * seconds {
		r.now = begin.Add(time.Duration(n) * time.Second / perSecond)
		s.receiver.RTCP(hostileReport(uint16(n), 24), r.now)
		r.run()
	}
	const want = seconds * feedback.MaxReportRate
	if stats := r.engine.Stats(); stats.TransportReports != want ||
		stats.TransportDropped != perSecond*seconds-want {
		t.Errorf("%d reports were read and %d dropped, expected %d and %d", stats.TransportReports,
			stats.TransportDropped, want, perSecond*seconds-want)
	}
}

func TestMalformedReports(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.agree(testExtension)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(1144)...)
	r.run()
	short := hostileReport(0, 24)
	for _, report := range [][]byte{hostileReport(0, 24)[:20], append(short[:24:24], 0, 0, 0, 0), {0x8f, 205, 0, 0},
		hostileReport(0, 28)[:27], {0x8f, 205, 0xff, 0xff}} {
		s.receiver.RTCP(report, r.now)
	}
	huge := make([]byte, maxReportBytes/2)
	copy(huge, short)
	binary.BigEndian.PutUint16(huge[2:], uint16(len(huge)/4-1))
	s.receiver.RTCP(huge, r.now)
	r.pass(time.Second)
	if stats := r.engine.Stats(); stats.MalformedRTCP != 5 || stats.TransportReports != 0 ||
		stats.TransportDropped != 1 {
		t.Errorf("%d malformed, %d read, %d dropped, expected 5, none and the one that is too long",
			stats.MalformedRTCP, stats.TransportReports, stats.TransportDropped)
	}
}
