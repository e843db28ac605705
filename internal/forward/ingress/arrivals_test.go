package ingress

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// testExtension is the identifier of the transport-wide number.
const testExtension = 7

// TestReportsToPublishers lets a publisher number its packets, including repairs, and reads the server's reports.
func TestReportsToPublishers(t *testing.T) {
	r := newRig(t, nil)
	peer := &fakePeer{}
	i := r.ingress(peer)
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	history := feedback.NewTransportHistory(65500)
	p.Extension = testExtension
	var results []feedback.PacketResult
	reports := 0
	report := func() {
		t.Helper()
		compounds, next := i.arrivalReports(r.now)
		for _, compound := range compounds {
			raw, err := compound.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if media := binary.BigEndian.Uint32(raw[8:]); media != p.SSRC && media != p.RTX && media != 99 {
				t.Errorf("a report names the stream %d, which the publisher does not have", media)
			}
			packets, err := rtcp.Unmarshal(raw)
			if err != nil || len(packets) != 1 {
				t.Fatalf("%x is %d packets: %v", raw, len(packets), err)
			}
			reports++
			results = history.Feedback(raw, r.now, results)
		}
		if !next.IsZero() && next.Sub(r.now) > 250*time.Millisecond {
			t.Errorf("the next report is due in %v, expected 250 ms at most", next.Sub(r.now))
		}
	}
	number := func(packet []byte) []byte {
		binary.BigEndian.PutUint16(packet[17:], uint16(history.Sent(len(packet), feedback.Media, r.now)))
		return packet
	}
	// Before the peers agree, numbers have no meaning.
	p.Next()
	p.Send(r.now, p.Packets(1144)...)
	peer.extension = testExtension
	report()
	if reports != 0 {
		t.Fatal("a report of what has no number")
	}
	sent, lost, woken := 0, 0, 0
	for range 30 {
		p.Next()
		for n, packet := range p.Packets(20 * 1144) {
			number(packet)
			sent++
			if n == 7 {
				lost++
				r.now = r.now.Add(time.Millisecond)
				i.RTP(p.RTX, number(p.Retransmission(packet)), forwardtest.InfoAt(r.now))
			} else {
				i.RTP(p.SSRC, packet, forwardtest.InfoAt(r.now))
			}
			select {
			case <-i.waker.woken:
				woken++
				i.step(r.now)
			default:
			}
			if n == 7 {
				sent++
			}
		}
		i.RTP(99, number(p.Packet([]byte("of a stream that is not bound"), true)), forwardtest.InfoAt(r.now))
		sent++
		i.Flush()
		r.now = r.now.Add(33 * time.Millisecond)
		report()
	}
	r.now = r.now.Add(time.Second)
	report()
	received := 0
	for _, result := range results {
		if result.Received {
			received++
		}
	}
	if len(results) != sent || received != sent-lost || reports < 10 {
		t.Errorf("%d reports say of %d packets that %d were received, expected at least 10, %d and %d", reports,
			len(results), received, sent, sent-lost)
	}
	if stats := r.stats(); stats.TransportReportsSent != uint64(reports) {
		t.Errorf("%d reports were counted, expected %d", stats.TransportReportsSent, reports)
	}
	// Three for each report, and some for missing packets.
	if woken > 3*reports+2*lost+1 {
		t.Errorf("the goroutine was woken %d times for %d packets and %d reports", woken, sent, reports)
	}
}

// TestReportsToPublishersByStream reports the packets of a publisher that accepts RFC 8888: media, a repair and packets
// that are not bound, with their codepoints. The report about a mark leaves within 5 ms.
func TestReportsToPublishersByStream(t *testing.T) {
	r := newRig(t, nil)
	peer := &fakePeer{byStream: true}
	i := r.ingress(peer)
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	history := feedback.NewCongestionHistory()
	sent := func(packet []byte) []byte {
		ssrc, sequence := binary.BigEndian.Uint32(packet[8:]), binary.BigEndian.Uint16(packet[2:])
		history.Sent(ssrc, sequence, len(packet), feedback.Media, ecn.ECT1, r.now)
		return packet
	}
	// The goroutine of the ingress is stepped when it is due, and when it is woken.
	var results []feedback.PacketResult
	var marked, reported time.Time
	reports, marks := 0, 0
	step := func() time.Time {
		t.Helper()
		compounds, next := i.arrivalReports(r.now)
		for _, compound := range compounds {
			raw, err := compound.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			reports++
			before := len(results)
			results = history.Feedback(raw, r.now, results)
			for _, result := range results[before:] {
				if result.ECN != ecn.CE {
					continue
				}
				if marks++; reported.IsZero() {
					reported = r.now
				}
			}
		}
		return next
	}
	receive := func(ssrc uint32, packet []byte, codepoint ecn.Codepoint) {
		info := forwardtest.InfoAt(r.now)
		info.ECN = codepoint
		i.RTP(ssrc, packet, info)
		select {
		case <-i.waker.woken:
			step()
		default:
		}
	}
	packets, lost := 0, 0
	for frame := range 30 {
		p.Next()
		for n, packet := range p.Packets(20 * 1144) {
			codepoint := ecn.ECT1
			if frame == 20 && n == 10 {
				codepoint, marked = ecn.CE, r.now
			}
			sent(packet)
			packets++
			if n != 7 {
				receive(p.SSRC, packet, codepoint)
				continue
			}
			lost++
			repair := sent(p.Retransmission(packet))
			packets++
			receive(p.RTX, repair, ecn.ECT0)
		}
		other := sent(p.Packet([]byte("of a stream that is not bound"), true))
		packets++
		receive(p.SSRC, other, ecn.ECT1)
		i.Flush()
		for end := r.now.Add(33 * time.Millisecond); r.now.Before(end); r.now = r.now.Add(time.Millisecond) {
			if next := step(); !next.IsZero() && next.Sub(r.now) > 200*time.Millisecond {
				t.Errorf("the next report is due in %v, expected 200 ms at most", next.Sub(r.now))
			}
		}
	}
	r.now = r.now.Add(time.Second)
	step()
	received := map[ecn.Codepoint]int{}
	for _, result := range results {
		if result.Received {
			received[result.ECN]++
		}
	}
	if len(results) != packets || received[ecn.ECT0] != lost || received[ecn.CE] != 1 ||
		received[ecn.ECT1] != packets-2*lost-1 {
		t.Errorf("%d results with %v, expected %d, of which %d with ECT(0), 1 with CE and %d with ECT(1)", len(results),
			received, packets, lost, packets-2*lost-1)
	}
	if wait := reported.Sub(marked); reported.IsZero() || wait > 5*time.Millisecond {
		t.Errorf("the mark was reported after %v, expected 5 ms at most", wait)
	}
	if stats := r.stats(); stats.TransportReportsSent != uint64(reports) || reports < 10 {
		t.Errorf("%d reports were counted, expected %d, and at least 10", stats.TransportReportsSent, reports)
	}
	// Marks soon after a report are reported within 5 ms as well.
	for burst := range 5 {
		p.Next()
		before := marks
		for _, packet := range p.Packets(20 * 1144) {
			receive(p.SSRC, sent(packet), ecn.CE)
		}
		for range 5 {
			r.now = r.now.Add(time.Millisecond)
			step()
		}
		if marks != before+20 {
			t.Errorf("burst %d: of 20 marks %d are reported within 5 ms", burst, marks-before)
		}
	}
	// Another answer agrees on numbers, which these packets do not have, and later on reports by stream again.
	before := reports
	for _, byStream := range []bool{false, true} {
		peer.byStream, peer.extension = byStream, testExtension
		p.Next()
		for _, packet := range p.Packets(5 * 1144) {
			receive(p.SSRC, sent(packet), ecn.ECT1)
		}
		r.now = r.now.Add(time.Second)
		step()
		if made := reports - before; made != 0 && !byStream || made != 1 && byStream {
			t.Errorf("by stream %t: %d reports", byStream, made)
		}
	}
	if stats := r.stats(); stats.TransportReportsSent != uint64(reports) {
		t.Errorf("%d reports were counted, expected %d", stats.TransportReportsSent, reports)
	}
}
