package feedback

import (
	"math/rand/v2"
	"testing"
	"time"
)

// reportAll makes all reports that are due, and returns their sizes.
func reportAll(t testing.TB, r *TransportRecorder, limit int, now time.Time,
	each func([]arrivalStatus)) (compounds int) {
	t.Helper()
	for {
		compound := r.AppendReports(nil, 1, 2, now)
		if len(compound) == 0 {
			return compounds
		}
		if compounds++; len(compound) > limit || compounds > maxWindow {
			t.Fatalf("compound %d has %d bytes", compounds, len(compound))
		}
		for _, report := range splitReports(t, compound) {
			statuses, _ := decodeReport(t, report)
			each(statuses)
		}
	}
}

// TestTransportRecorderHostile sends numbers at random, in jumps of half the number space, and in patterns that make
// reports long. Memory stays bounded, and every report well-formed and small.
func TestTransportRecorderHostile(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for name, next := range map[string]func(last uint16) uint16{
		"random":    func(uint16) uint16 { return uint16(random.Uint32()) },
		"jumps":     func(last uint16) uint16 { return last + maxWindow - 1 },
		"half":      func(last uint16) uint16 { return last + maxWindow },
		"alternate": func(last uint16) uint16 { return last + 2 },
		"far apart": func(last uint16) uint16 { return last + maxMerge + 2 },
		"backwards": func(last uint16) uint16 { return last - 1 },
		"scattered": func(last uint16) uint16 { return last + uint16(random.IntN(2000)) - 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig().Transport
			r := NewTransportRecorder(cfg)
			now, sequence, reported := start, uint16(0), uint64(0)
			for range 20_000 {
				now = now.Add(time.Duration(random.IntN(30)) * time.Microsecond)
				sequence = next(sequence)
				r.Received(sequence, 1200, now)
				if at := r.Next(); !at.After(now) {
					reportAll(t, r, cfg.MaxBytes, now, func(statuses []arrivalStatus) {
						for _, status := range statuses {
							if status.received {
								reported++
							}
						}
					})
				}
			}
			stats := r.Stats()
			if len(r.ticks) > maxWindow || r.waiting > maxWindow || reported+stats.Dropped+
				uint64(r.waiting) < stats.Received {
				t.Errorf("window %d, waiting %d, reported %d, %+v", len(r.ticks), r.waiting, reported, stats)
			}
		})
	}
}

// TestTransportRecorderTimes checks the intervals at several rates.
func TestTransportRecorderTimes(t *testing.T) {
	for _, test := range []struct {
		rate, size int
		expected   time.Duration
	}{
		{rate: 20_000, size: 100, expected: 250 * time.Millisecond},
		{rate: 100_000, size: 250, expected: 150 * time.Millisecond},
		{rate: 1_000_000, size: 1000, expected: 50 * time.Millisecond},
		{rate: 10_000_000, size: 1200, expected: 50 * time.Millisecond},
		{rate: 15_000_000, size: 1200, expected: 33 * time.Millisecond},
		{rate: 21_000_000, size: 1200, expected: 25 * time.Millisecond},
		{rate: 100_000_000, size: 1200, expected: 25 * time.Millisecond},
	} {
		cfg := DefaultConfig().Transport
		r := NewTransportRecorder(cfg)
		spacing := time.Duration(test.size) * 8 * time.Second / time.Duration(test.rate)
		var reports []time.Time
		for i := range int(5 * time.Second / spacing) {
			now := after(time.Duration(i) * spacing)
			r.Received(uint16(i), test.size, now)
			if !r.Next().After(now) {
				reports = append(reports, now)
				reportAll(t, r, cfg.MaxBytes, now, func([]arrivalStatus) {})
			}
		}
		mean := reports[len(reports)-1].Sub(reports[0]) / time.Duration(len(reports)-1)
		if mean < test.expected || mean > test.expected+max(spacing, test.expected/10) {
			t.Errorf("%d bit/s: a report every %v, expected %v", test.rate, mean, test.expected)
		}
	}
}

// TestTransportRecorderAllocations checks that neither recording nor reporting allocates, with loss and late packets.
func TestTransportRecorderAllocations(t *testing.T) {
	r := NewTransportRecorder(DefaultConfig().Transport)
	buffer := make([]byte, 0, 1500)
	number, now, reports := 0, start, 0
	step := func() {
		for range 250 {
			now = now.Add(100 * time.Microsecond)
			if number++; number%20 != 0 {
				r.Received(uint16(number), 1200, now)
			}
			if number%60 == 10 {
				r.Received(uint16(number-210), 1200, now)
			}
		}
		for len(r.AppendReports(buffer, 1, 2, now)) > 0 {
			reports++
		}
	}
	for range 100 {
		step()
	}
	if allocations := testing.AllocsPerRun(400, step); allocations != 0 || reports < 400 {
		t.Errorf("%.1f allocations in 25 ms, %d reports", allocations, reports)
	}
}

// FuzzTransportRecorder compares reports with a model of the arrivals: every recorded packet is reported as received
// with its exact time, no other packet is, and no received packet is reported as lost after its arrival.
func FuzzTransportRecorder(f *testing.F) {
	f.Add(uint16(1100), []byte{0, 1, 10, 0, 2, 20, 0, 1, 255, 0xff, 0xff, 0, 0x7f, 0xff, 9, 0x80, 0, 1})
	f.Add(uint16(64), []byte{0, 30, 0, 0xff, 0xe3, 255, 0, 30, 255, 0xff, 0xf0, 255, 0, 200, 255})
	f.Fuzz(func(t *testing.T, limit uint16, data []byte) {
		cfg := DefaultConfig().Transport
		cfg.MaxBytes = max(int(limit)%1101, minReports)
		r := NewTransportRecorder(cfg)
		now, sequence, first := start, uint16(0), time.Time{}
		arrived := map[uint16]int64{} // tick by number
		var recorded, reported uint64
		check := func(statuses []arrivalStatus) {
			for _, status := range statuses {
				tick, known := arrived[status.number]
				if status.received && (!known || tick != status.tick) {
					t.Fatalf("%d reported at %d, arrived at %d, %t", status.number, status.tick, tick, known)
				}
				if status.received {
					reported++
				}
			}
		}
		for ; len(data) >= 3; data = data[3:] {
			sequence += uint16(data[0])<<8 | uint16(data[1])
			// Up to 2.6 s.
			now = now.Add(time.Duration(data[2]) * time.Duration(data[2]) * 40 * time.Microsecond)
			if first.IsZero() {
				first = now
			}
			r.Received(sequence, 1200, now)
			if received := r.Stats().Received; received > recorded {
				recorded = received
				arrived[sequence] = int64(now.Sub(first)/deltaTick) & (1<<32 - 1)
			}
			if !r.Next().IsZero() && !r.Next().After(now) {
				reportAll(t, r, cfg.MaxBytes, now, check)
			}
		}
		reportAll(t, r, cfg.MaxBytes, now.Add(time.Second), check)
		if stats := r.Stats(); !r.Next().IsZero() || reported+stats.Dropped < stats.Received {
			t.Fatalf("reported %d, %+v", reported, stats)
		}
	})
}
