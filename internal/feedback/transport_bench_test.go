package feedback

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
)

// BenchmarkTransportReceived records packets in order at 10,000 per second, with 1 % of loss, and makes the reports
// that are due.
func BenchmarkTransportReceived(b *testing.B) {
	benchmarkReceived(b, 100*time.Microsecond, func(i int) (uint16, bool) { return uint16(i), i%100 != 0 })
}

// BenchmarkTransportReceivedHostile jumps by the largest distance with every packet, at 100,000 per second.
func BenchmarkTransportReceivedHostile(b *testing.B) {
	benchmarkReceived(b, 10*time.Microsecond, func(i int) (uint16, bool) { return uint16(i * (maxWindow - 1)), true })
}

func benchmarkReceived(b *testing.B, spacing time.Duration, sequence func(int) (uint16, bool)) {
	r := NewTransportRecorder(DefaultConfig().Transport)
	buffer := make([]byte, 0, 1500)
	now := time.Now() // with a monotonic clock, as outside of tests
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(spacing)
		if number, arrives := sequence(i); arrives {
			r.Received(number, 1200, now)
		}
		if i%64 == 0 {
			for len(r.AppendReports(buffer, 1, 2, now)) > 0 {
			}
		}
	}
}

// BenchmarkTransportReport makes one report of 250 packets, those of 25 ms at 100 Mbit/s, with 4 % of loss.
func BenchmarkTransportReport(b *testing.B) {
	r := NewTransportRecorder(DefaultConfig().Transport)
	buffer := make([]byte, 0, 1500)
	now, number := time.Now(), uint16(0)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for range 250 {
			now = now.Add(100 * time.Microsecond)
			if number++; number%25 != 0 {
				r.Received(number, 1200, now)
			}
		}
		b.StartTimer()
		if len(r.AppendReports(buffer, 1, 2, now)) == 0 {
			b.Fatal("no report")
		}
	}
}

// BenchmarkTransportSent numbers packets and processes a report of 250 of them every 25 ms; an operation is one packet.
func BenchmarkTransportSent(b *testing.B) {
	h, r := NewTransportHistory(0), NewTransportRecorder(DefaultConfig().Transport)
	buffer := make([]byte, 0, 1500)
	results := make([]PacketResult, 0, 1024)
	now := time.Now() // with a monotonic clock, as outside of tests
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(100 * time.Microsecond)
		if number := h.Sent(1200, Media, now); i%100 != 0 {
			r.Received(uint16(number), 1200, now)
		}
		if i%250 == 0 {
			for report := r.AppendReports(buffer, 1, 2, now); len(report) > 0; report = r.AppendReports(buffer,
				1, 2, now) {
				results = h.Feedback(report, now, results[:0])
			}
		}
	}
}

// BenchmarkTransportFeedback processes one report of 250 packets that were sent before; library is only the decoding by
// the RTCP library.
func BenchmarkTransportFeedback(b *testing.B) {
	deltas := make([]int, 250)
	for i := range deltas {
		if deltas[i] = i % 2; i%25 == 0 {
			deltas[i] = -1
		}
	}
	deltas[249] = 1
	b.Run("history", func(b *testing.B) {
		h := NewTransportHistory(0)
		results := make([]PacketResult, 0, 1024)
		begin := time.Now()
		now := begin
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			now = now.Add(25 * time.Millisecond)
			report := feedbackOf(uint16(h.next), uint32(now.Sub(begin)/referenceTick), deltas...)
			for range deltas {
				h.Sent(1200, Media, now)
			}
			b.StartTimer()
			if results = h.Feedback(report, now, results[:0]); len(results) != len(deltas) {
				b.Fatalf("%d results", len(results))
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		report := feedbackOf(0, 0, deltas...)
		b.ReportAllocs()
		for b.Loop() {
			var decoded rtcp.TransportLayerCC
			if err := decoded.Unmarshal(report); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTransportSequence(b *testing.B) {
	packet := packetWith(b, 0, []byte{7}, []byte{0xab, 0xcd})
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := TransportSequence(packet, 2); !ok {
			b.Fatal("not found")
		}
	}
}
