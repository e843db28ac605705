package client

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestArrivalsAreReportedByStream receives a slot's packets and a retransmission, and reads what is reported of them, losses included.
func TestArrivalsAreReportedByStream(t *testing.T) {
	m := newRig(t, Config{Feedback: FeedbackCCFB})
	m.agree(0, true)
	w := watcher{media: m}
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
	if report.Sender != m.ssrc || len(report.Streams) != 2 {
		t.Fatalf("reported %+v", report)
	}
	media, repaired := report.Streams[0], report.Streams[1]
	if media.SSRC != 100 || media.Begin != 65_000 || len(media.Packets) != 6 || repaired.SSRC != 101 || repaired.Begin != 7 || len(repaired.Packets) != 1 {
		t.Fatalf("reported %+v", report)
	}
	for i, p := range append(media.Packets, repaired.Packets...) {
		if p.Received != (i != 1) || p.ECN != feedback.NotECT {
			t.Errorf("packet %d is %+v", i, p)
		}
	}
	// Another connection may agree on transport-wide feedback.
	m.reset()
	m.agree(1, false)
	in = newIncoming(t, m, "0", volumetric.KindVideo, 100)
	in.send(1, 0, now)
	if w.reportArrivals(now.Add(time.Second)); len(w.arrivals) > 0 {
		t.Error("packets without numbers are reported")
	}
}

// TestPublishingBeginsNumbers: who reports by stream numbers what it sends once there is something.
func TestPublishingBeginsNumbers(t *testing.T) {
	m := newRig(t, Config{Feedback: FeedbackCCFB})
	m.agree(0, true)
	m.connect(0)
	if m.agree(1, true); m.extension != 1 || m.arrivals.streams == nil {
		t.Errorf("extension %d after an answer with a line that is sent on", m.extension)
	}
	recorder := m.arrivals.streams
	if m.agree(1, true); m.arrivals.streams != recorder {
		t.Error("another answer has begun the reports anew")
	}
}
