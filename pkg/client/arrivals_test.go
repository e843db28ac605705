package client

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestArrivalsAreReportedByStream receives packets of a slot and a retransmission, and parses the reports about them,
// losses included.
func TestArrivalsAreReportedByStream(t *testing.T) {
	m := newRig(t, Config{Feedback: FeedbackCCFB})
	m.agree(agreement{downlinkByStream: true})
	w := watcher{media: m.media}
	in := newIncoming(t, m, "0", volumetric.KindVideo, 100)
	now := time.Now()
	in.send(1, 0, now, 1)
	in.repair(65_001, 3000, packets(t, 1, 0, now, 3000)[1], now)
	in.send(2, 0, now.Add(10*time.Millisecond))
	m.RTP(100, []byte{0x80, 96, 1}, &transport.PacketInfo{At: now})
	if w.reportArrivals(now.Add(time.Millisecond)); len(w.arrivals) > 0 {
		t.Fatal("a report is made before it is due")
	}
	w.reportArrivals(now.Add(200 * time.Millisecond))
	if len(w.arrivals) != 1 {
		t.Fatalf("%d reports, expected one", len(w.arrivals))
	}
	raw, err := w.arrivals[0].Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var report feedback.CongestionReport
	if err := report.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	if report.Sender == 0 || len(report.Streams) != 2 {
		t.Fatalf("reported %+v", report)
	}
	media, repaired := report.Streams[0], report.Streams[1]
	if media.SSRC != 100 || media.Begin != 65_000 || len(media.Packets) != 6 || repaired.SSRC != 101 ||
		repaired.Begin != 7 || len(repaired.Packets) != 1 {
		t.Fatalf("reported %+v", report)
	}
	for i, p := range append(media.Packets, repaired.Packets...) {
		if p.Received != (i != 1) || p.ECN != ecn.NotECT {
			t.Errorf("packet %d is %+v", i, p)
		}
	}
	// Another connection may agree on transport-wide feedback.
	m.reset()
	m.agree(agreement{extension: 1})
	in = newIncoming(t, m, "0", volumetric.KindVideo, 100)
	in.send(1, 0, now)
	if w.reportArrivals(now.Add(time.Second)); len(w.arrivals) > 0 {
		t.Error("packets without numbers are reported")
	}
}

// TestPublishingBeginsEstimates: a client that reports by stream estimates its uplink once it publishes. Its packets
// are numbered if the server reports by number, as older servers do.
func TestPublishingBeginsEstimates(t *testing.T) {
	for _, publishing := range []agreement{
		{downlinkByStream: true, uplinkByStream: true}, {extension: 1, downlinkByStream: true},
	} {
		m := newRig(t, Config{Feedback: FeedbackCCFB})
		m.agree(agreement{downlinkByStream: true})
		m.connect()
		p := newPublisher(m.session.publishers, described("body", volumetric.MIMEVolumetric, 1, 1))
		p.attach(m.media, "0", newOutlet(volumetric.MIMEVolumetric, 100, 101), 0, 0)
		send := func(number uint32) *rtp.Header {
			t.Helper()
			if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: number, Capture: time.Now(),
				Data: []byte("tile")}); err != nil {
				t.Fatal(err)
			}
			// At the start rate a packet leaves 3 ms after the estimate has begun.
			left := m.uplink.Depart(time.Now().Add(10*time.Millisecond), nil)
			if len(left) != 1 {
				t.Fatalf("%d packets of frame %d leave, expected 1", len(left), number)
			}
			return &left[0].Header
		}
		if h := send(1); h.Extension || m.uplink.Estimates() {
			t.Errorf("a packet has %+v and an estimate: %v before reports are agreed on", h, m.uplink.Estimates())
		}
		m.agree(publishing)
		if h := send(2); (h.GetExtension(1) != nil) == publishing.uplinkByStream || !m.uplink.Estimates() {
			t.Errorf("a packet has %+v and an estimate: %v after an answer with a line that is sent on", h,
				m.uplink.Estimates())
		}
	}
}

// TestMarksAreReportedSoon: a packet with ECN-CE wakes the watching goroutine once, and its report is due 4 ms after
// the last one.
func TestMarksAreReportedSoon(t *testing.T) {
	m := newRig(t, Config{Feedback: FeedbackCCFB})
	m.agree(agreement{downlinkByStream: true})
	w := watcher{media: m.media}
	now := time.Now()
	sequence := uint16(0)
	receive := func(packets int, codepoint ecn.Codepoint) {
		for range packets {
			m.RTP(100, marshal(t, 100, sequence, 0, make([]byte, 1000)), &transport.PacketInfo{At: now, ECN: codepoint})
			sequence++
		}
	}
	woken := func() bool {
		select {
		case <-m.marks:
			return true
		default:
			return false
		}
	}
	receive(20, ecn.ECT1)
	if woken() {
		t.Error("a packet without a mark wakes the goroutine")
	}
	now = now.Add(300 * time.Millisecond)
	if w.reportArrivals(now); len(w.arrivals) != 1 {
		t.Fatalf("%d reports, expected one", len(w.arrivals))
	}
	now = now.Add(time.Millisecond)
	receive(20, ecn.CE)
	if !woken() || woken() {
		t.Error("packets with marks do not wake the goroutine once")
	}
	due := (&watcher{media: m.media}).arrivalsDue()
	if wait := due.Sub(now); wait <= 0 || wait > 4*time.Millisecond {
		t.Errorf("the report about marks is due in %v, expected 4 ms at most", wait)
	}
	if w.reportArrivals(due); len(w.arrivals) != 1 {
		t.Fatalf("%d reports about marks, expected one", len(w.arrivals))
	}
	raw, err := w.arrivals[0].Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var report feedback.CongestionReport
	if err := report.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	if s := report.Streams[0]; len(s.Packets) != 20 || s.Packets[0].ECN != ecn.CE {
		t.Errorf("reported %+v", s)
	}
	if got := m.session.ECN(); got != (ECNCounts{ECT1: 20, CE: 20}) {
		t.Errorf("the codepoints are %+v, expected 20 ECT(1) and 20 CE", got)
	}
	if receive(1, ecn.CE); !woken() {
		t.Error("the next mark does not wake the goroutine")
	}
}
