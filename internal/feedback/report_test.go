package feedback

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/payload"
)

const ms = time.Millisecond

func TestSenderReport(t *testing.T) {
	s := NewSenderReporter(9, 90_000)
	if _, ok := s.Report(start); ok {
		t.Fatal("a report without a mapping")
	}
	s.Count(1000)
	s.Count(160)
	// The publisher's clock is an hour ahead of the local one.
	s.Map(0xffffff00, start.Add(time.Hour), start)
	report, ok := s.Report(after(100 * ms))
	want := rtcp.SenderReport{SSRC: 9, NTPTime: payload.NTP64(start.Add(time.Hour + 100*ms)), RTPTime: 9000 - 0x100,
		PacketCount: 2, OctetCount: 1160}
	if !ok || report.SSRC != want.SSRC || report.NTPTime != want.NTPTime || report.RTPTime != want.RTPTime ||
		report.PacketCount != want.PacketCount || report.OctetCount != want.OctetCount {
		t.Fatalf("got %+v, expected %+v", report, want)
	}
	s.Unmap()
	if _, ok := s.Report(start); ok {
		t.Fatal("a report after the mapping was forgotten")
	}
}

func TestRoundTripFromReports(t *testing.T) {
	s := NewSenderReporter(9, 48_000)
	s.Map(0, start.Add(-time.Hour), start)
	var middle [12]uint32
	for i := range middle {
		report, _ := s.Report(after(time.Duration(i) * time.Second))
		middle[i] = uint32(report.NTPTime >> 16)
	}
	const second = 65536
	tests := []struct {
		name  string
		block rtcp.ReceptionReport
		at    time.Duration
		want  time.Duration
		ok    bool
	}{
		{"latest", rtcp.ReceptionReport{SSRC: 9, LastSenderReport: middle[11], Delay: second / 2},
			11*time.Second + 520*ms, 20 * ms, true},
		{"earlier", rtcp.ReceptionReport{SSRC: 9, LastSenderReport: middle[5], Delay: 6 * second},
			11*time.Second + 70*ms, 70 * ms, true},
		{"rounded below zero", rtcp.ReceptionReport{SSRC: 9, LastSenderReport: middle[11], Delay: second/2 + 1},
			11*time.Second + 500*ms, time.Second / 65536, true},
		{"negative", rtcp.ReceptionReport{SSRC: 9, LastSenderReport: middle[11], Delay: second},
			11*time.Second + 500*ms, 0, false},
		{"too long", rtcp.ReceptionReport{SSRC: 9, LastSenderReport: middle[11]}, 22 * time.Second, 0, false},
		{"forgotten report", rtcp.ReceptionReport{SSRC: 9, LastSenderReport: middle[2]}, 11 * time.Second, 0, false},
		{"invented report", rtcp.ReceptionReport{SSRC: 9, LastSenderReport: 12345}, 11 * time.Second, 0, false},
		{"no report yet", rtcp.ReceptionReport{SSRC: 9}, 11 * time.Second, 0, false},
		{"another stream", rtcp.ReceptionReport{SSRC: 8, LastSenderReport: middle[11]}, 11 * time.Second, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := s.RoundTrip(&test.block, after(test.at)); ok != test.ok || got != test.want {
				t.Fatalf("got %v, %v; expected %v, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

func TestCaptureClock(t *testing.T) {
	for _, rate := range []uint32{90_000, 48_000, 8000} {
		c := NewCaptureClock(rate)
		if _, ok := c.Capture(0); ok {
			t.Fatal("a capture time before any report")
		}
		c.SenderReport(&rtcp.SenderReport{RTPTime: 5})
		if _, ok := c.Capture(0); ok {
			t.Fatal("a report without a wall clock was believed")
		}
		c.SenderReport(&rtcp.SenderReport{NTPTime: payload.NTP64(start), RTPTime: 1000})
		for _, distance := range []time.Duration{0, time.Second, -time.Second, 6 * time.Hour, -6 * time.Hour} {
			timestamp := 1000 + uint32(ticks(distance, rate))
			if got, ok := c.Capture(timestamp); !ok || !got.Equal(after(distance)) {
				t.Errorf("%d Hz, %v: got %v", rate, distance, got.Sub(start))
			}
		}
		timestamp, capture, known := c.Mapping()
		if timestamp != 1000 || !capture.Equal(start) || !known {
			t.Errorf("mapping is %d, %v", timestamp, capture)
		}
		c.Reset()
		if _, ok := c.Capture(0); ok {
			t.Error("a capture time after the mapping was forgotten")
		}
	}
	c := NewCaptureClock(0)
	c.SenderReport(&rtcp.SenderReport{NTPTime: 1 << 32})
	if _, ok := c.Capture(0); ok {
		t.Error("a clock without a rate")
	}
}

// TestReportChain checks that a server that maps by a publisher's reports passes the publisher's capture times to the
// watcher, for any transit time of the reports.
func TestReportChain(t *testing.T) {
	publisher, server, watcher := NewSenderReporter(1, 90_000), NewSenderReporter(2, 90_000), NewCaptureClock(90_000)
	atServer := NewCaptureClock(90_000)
	publisher.Map(1000, start, start)
	report, _ := publisher.Report(after(50 * ms))
	atServer.SenderReport(report)
	timestamp, capture, _ := atServer.Mapping()
	server.Map(timestamp+777, capture, after(130*ms)) // a slot adds a constant
	report, _ = server.Report(after(900 * ms))
	watcher.SenderReport(report)
	if got, ok := watcher.Capture(1777 + 3000); !ok || got.Sub(after(time.Second/30)).Abs() > time.Microsecond {
		t.Fatalf("captured at %v, expected %v", got, after(time.Second/30))
	}
}

func TestReceptionReport(t *testing.T) {
	r := NewReception(90_000)
	if _, ok := r.Report(1, start); ok {
		t.Fatal("a report before the first packet")
	}
	// 256 numbers, every 16th lost, one duplicated: 16 lost of 256, one more received.
	first := int64(65536 + 65500)
	for i := range int64(256) {
		if i%16 != 8 {
			r.Received(first+i, uint32(i*3000), after(time.Duration(i)*time.Second/30))
		}
	}
	r.Received(first, 0, after(9*time.Second))
	r.SenderReport(0x0123456789abcdef, after(9*time.Second))
	block, ok := r.Report(42, after(9500*ms))
	want := rtcp.ReceptionReport{
		SSRC: 42, FractionLost: 15, TotalLost: 15, LastSequenceNumber: 65500 + 255, LastSenderReport: 0x456789ab,
		Delay: 32768,
	}
	if !ok || block != want {
		t.Fatalf("got %+v, expected %+v", block, want)
	}
	// A late packet in the next interval: no loss in the interval, one less in total.
	r.Received(first+8, 8*3000, after(10*time.Second))
	r.Received(first+256, 256*3000, after(10*time.Second))
	if block, _ = r.Report(42, after(10*time.Second)); block.FractionLost != 0 || block.TotalLost != 14 {
		t.Fatalf("got %+v", block)
	}
	// More packets than numbers: the cumulative number is negative, in 24 bits.
	for range 20 {
		r.Received(first, 0, after(10*time.Second))
	}
	if block, _ = r.Report(42, after(10*time.Second)); block.TotalLost != 0xfffffa || block.FractionLost != 0 {
		t.Fatalf("got %+v", block)
	}
	if raw, err := block.Marshal(); err != nil || raw[5] != 0xff {
		t.Fatalf("cannot be sent: % x, %v", raw, err)
	}
	r.Reset()
	if _, ok := r.Report(1, start); ok {
		t.Fatal("a report after reset")
	}
}

func TestReceptionExtremes(t *testing.T) {
	r := NewReception(90_000)
	r.Received(1<<16, 0, start)
	r.Received(1<<16+1<<40, 0, start)
	if block, _ := r.Report(1, after(24*time.Hour)); block.TotalLost != maxLost || block.FractionLost != 255 ||
		block.Delay != 0 {
		t.Fatalf("got %+v", block)
	}
	r.SenderReport(1<<16, start)
	if block, _ := r.Report(1, after(24*time.Hour)); block.Delay != 1<<32-1 {
		t.Fatalf("delay is %d", block.Delay)
	}
}

func TestJitter(t *testing.T) {
	run := func(late func(frame int) time.Duration) uint32 {
		r := NewReception(90_000)
		sequence := int64(1 << 16)
		for frame := range 1000 {
			for packet := range 4 {
				// Pacing spreads a frame over 13 ms; timestamps wrap around.
				at := after(time.Duration(frame)*time.Second/30 + late(frame) + time.Duration(packet)*4*ms)
				r.Received(sequence, uint32(frame*3000)-1_500_000, at)
				sequence++
			}
		}
		block, _ := r.Report(1, start)
		return block.Jitter
	}
	if got := run(func(int) time.Duration { return 0 }); got > 1 {
		t.Errorf("paced frames on a steady path have a jitter of %d", got)
	}
	// Every other frame 10 ms late: the transit time changes by 900 units each time.
	if got := run(func(frame int) time.Duration { return time.Duration(frame%2) * 10 * ms }); got < 890 || got > 910 {
		t.Errorf("jitter is %d, expected about 900", got)
	}
	// One jump by a minute is not jitter.
	if got := run(func(frame int) time.Duration { return time.Duration(frame/500) * time.Minute }); got > 1 {
		t.Errorf("a jump makes a jitter of %d", got)
	}
}

func TestRoundTripSmoothing(t *testing.T) {
	var r RoundTrip
	if r.Value() != 0 {
		t.Fatal("known before the first measurement")
	}
	r.Add(80 * ms)
	if r.Value() != 80*ms {
		t.Fatalf("first measurement gives %v", r.Value())
	}
	r.Add(160 * ms)
	if r.Value() != 90*ms {
		t.Fatalf("an eighth of the difference gives %v", r.Value())
	}
}
