package feedback

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/test/race"
)

// reporting is a receiver that makes every report at the time of Next.
type reporting struct {
	*CongestionRecorder
	t *testing.T
	// bytes is the size of all reports on the wire.
	bytes, reports int
	// arrivals are the times of the packets of the last stream, wait the longest time from the arrival of one with
	// ECN-CE to its report.
	arrivals [1 << 16]time.Duration
	wait     time.Duration
	report   CongestionReport
	buffer   []byte
}

func newReporting(t *testing.T) *reporting {
	return &reporting{CongestionRecorder: NewCongestionRecorder(DefaultConfig().Transport, 1), t: t}
}

// receive records a packet that arrives at a time, after the reports that are due before.
func (r *reporting) receive(ssrc uint32, sequence uint16, size int, codepoint ecn.Codepoint, at time.Duration) {
	r.until(at - 1)
	r.arrivals[sequence] = at
	r.Received(ssrc, sequence, size, codepoint, after(at))
	r.until(at)
}

// until makes the reports that are due until a time.
func (r *reporting) until(end time.Duration) {
	for next := r.Next(); !next.IsZero() && !next.After(after(end)); next = r.Next() {
		// A report that a packet makes due in the past leaves with the packet.
		now := max(next.Sub(start), r.latest+r.epoch.Sub(start))
		r.buffer = r.AppendReports(r.buffer[:0], after(now))
		if err := r.report.Unmarshal(r.buffer); err != nil {
			r.t.Fatalf("at %v, when a report is due: %v", now, err)
		}
		r.reports++
		r.bytes += len(r.buffer) + reportWireOverhead - emptyCongestionReport
		for _, s := range r.report.Streams {
			for i, p := range s.Packets {
				if p.ECN == ecn.CE {
					r.wait = max(r.wait, now-r.arrivals[s.Begin+uint16(i)])
				}
			}
		}
	}
}

// TestReportsAboutMarksTakeTheirShare receives packets of 1,200 bytes, all or some of which are marked, at even
// distances and in frames that are sent at 2.5 times their rate. The bounds of a mark's wait are 4 ms, or the time in
// which 5 % of the rate permit a report.
func TestReportsAboutMarksTakeTheirShare(t *testing.T) {
	race.SkipSequential(t)
	const size, length = 1200, 10 * time.Second
	for _, test := range []struct {
		mbps  float64
		share float64
		wait  time.Duration
	}{
		{0.5, 0.05, 40 * time.Millisecond}, {2, 0.05, 10 * time.Millisecond}, {5, 0.05, 4 * time.Millisecond},
		{10, 0.05, 4 * time.Millisecond}, {17.4, 0.05, 5 * time.Millisecond}, {20, 0.01, 5 * time.Millisecond},
		{50, 0.01, 4 * time.Millisecond},
		{100, 0.01, 4 * time.Millisecond}, {1000, 0.01, 4 * time.Millisecond},
	} {
		for _, marked := range []float64{1, 0.02} {
			for _, frames := range []bool{false, true} {
				random := rand.New(rand.NewPCG(1, 2))
				r := newReporting(t)
				gap := time.Duration(size * 8 * 1e3 / test.mbps)
				packets := int(length / gap)
				each := max(int(time.Second/30/gap), 1)
				for i := range packets {
					at := time.Duration(i) * gap
					if frames {
						at = time.Duration(i/each*each)*gap + time.Duration(i%each)*gap*2/5
					}
					codepoint := ecn.ECT1
					if random.Float64() < marked {
						codepoint = ecn.CE
					}
					r.receive(7, uint16(i), size, codepoint, at)
				}
				share := float64(r.bytes) / float64(packets*size)
				t.Logf("%5.1f Mbit/s, %3.0f %% marked, frames %-5t: %5.1f reports/s, %.2f %% of the rate, wait %v",
					test.mbps, 100*marked, frames, float64(r.reports)/length.Seconds(), 100*share, r.wait)
				// The share is 5 % until the rate is measured: two reports are saved, and reports are sent for 100 ms.
				if most := test.share*float64(packets*size) + float64(3*r.cfg.MaxBytes); float64(r.bytes) > most {
					t.Errorf("%g Mbit/s: reports take %.2f %% of the rate, expected %.0f %% at most", test.mbps,
						100*share, 100*test.share)
				}
				if r.wait > test.wait && (!frames || test.mbps >= 5) {
					t.Errorf("%g Mbit/s: a mark waits for its report for %v, expected %v at most", test.mbps, r.wait,
						test.wait)
				}
			}
		}
	}
}

// TestReportsWithoutMarksAreNotEarlier compares the reports about packets with ECT(1) and without ECT: there are
// equally many.
func TestReportsWithoutMarksAreNotEarlier(t *testing.T) {
	plain, capable := newReporting(t), newReporting(t)
	for i := range 20_000 {
		at := time.Duration(i) * 200 * time.Microsecond
		plain.receive(7, uint16(i), 1200, ecn.NotECT, at)
		capable.receive(7, uint16(i), 1200, ecn.ECT1, at)
	}
	if plain.reports != capable.reports || plain.bytes != capable.bytes || plain.reports > 161 {
		t.Errorf("%d reports of %d bytes with ECT(1), %d of %d without, expected as many, and at most 40 per second",
			capable.reports, capable.bytes, plain.reports, plain.bytes)
	}
}

// TestJumpingNumbersCauseFewReports receives small packets whose numbers cause as many and as long reports as possible.
// The reports take less than the packets, and an honest stream is reported completely afterwards.
func TestJumpingNumbersCauseFewReports(t *testing.T) {
	const size = 50
	const onWire = size + 20 + 8 + 16
	for name, next := range map[string]func(i int) (ssrc uint32, sequence uint16){
		"jumps that are losses":  func(i int) (uint32, uint16) { return 7, uint16(i * maxStreamGap) },
		"jumps that are resets":  func(i int) (uint32, uint16) { return 7, uint16(i * (maxStreamGap + 2)) },
		"a new stream each time": func(i int) (uint32, uint16) { return uint32(i), 0 },
		"late packets of two streams": func(i int) (uint32, uint16) {
			// 500 numbers ahead, and the 499 before from the last to the first.
			n := i / 2
			return uint32(i % 2), uint16(n/500*500 + 500 - n%500)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReporting(t)
			const packets = 50_000
			at := time.Duration(0)
			for i := range packets {
				at += 50 * time.Microsecond
				ssrc, sequence := next(i)
				r.receive(ssrc, sequence, size, ecn.CE, at)
				if len(r.streams) > maxRecordedStreams {
					t.Fatalf("%d streams are recorded, expected %d at most", len(r.streams), maxRecordedStreams)
				}
			}
			t.Logf("%d reports take %.0f %% of the rate on the wire, %+v", r.reports,
				100*float64(r.bytes)/(packets*onWire), r.Stats())
			if r.bytes > packets*onWire/2 {
				t.Errorf("the reports take %d bytes, expected at most half of the %d of the packets", r.bytes,
					packets*onWire)
			}
			// The first packets restore the credit.
			for i := range 100 {
				at += 50 * time.Microsecond
				r.receive(1<<31, uint16(i), 1200, ecn.NotECT, at)
			}
			before := r.Stats()
			for i := range 1000 {
				at += time.Millisecond
				r.receive(1<<31, uint16(100+i), 1200, ecn.NotECT, at)
			}
			if s := r.Stats(); s.Received-before.Received != 1000 || s.Refused != before.Refused {
				t.Errorf("of 1000 honest packets %d are recorded, %d refused", s.Received-before.Received,
					s.Refused-before.Refused)
			}
		})
	}
}
