package feedback

import (
	"slices"
	"testing"
	"time"
)

// TestNACKMemory checks that memory and the work per packet are bounded when every other packet is lost, and that
// memory is released.
func TestNACKMemory(t *testing.T) {
	cfg := DefaultConfig().NACK
	g := NewNACKGenerator(cfg)
	lost := 0
	for sequence := int64(0); sequence < 100_000; sequence += 2 {
		g.Received(sequence, start)
		if len(g.missing) > cfg.MaxMissing || g.Missing() > cfg.MaxMissing {
			t.Fatalf("%d entries, %d missing", len(g.missing), g.Missing())
		}
		if sequence%5000 == 0 {
			_, gone := g.Due(start, 0, nil, nil)
			lost += len(gone)
		}
	}
	_, gone := g.Due(start.Add(time.Second), 0, nil, nil)
	_, rest := g.Due(start.Add(2*time.Second), 0, nil, nil)
	lost += len(gone) + len(rest)
	if stats := g.Stats(); lost != 49_999 || stats.Lost != 49_999 || stats.Missing != 49_999 || g.Missing() != 0 ||
		cap(g.missing) > keepMissing {
		t.Fatalf("%d lost, %+v, %d missing, room for %d", lost, stats, g.Missing(), cap(g.missing))
	}
	if !g.Next().IsZero() {
		t.Fatal("nothing is missing, but something is due")
	}
}

// TestNACKNoAllocations checks that neither packets in order nor single losses allocate in the steady state.
func TestNACKNoAllocations(t *testing.T) {
	g := NewNACKGenerator(DefaultConfig().NACK)
	sequence, now := int64(0), start
	ask, lost := make([]int64, 0, 64), make([]int64, 0, 64)
	allocations := testing.AllocsPerRun(1000, func() {
		for range 100 {
			sequence++
			now = now.Add(100 * time.Microsecond)
			if sequence%10 != 0 {
				g.Received(sequence, now)
				g.Expect(sequence+5, now)
			}
			if next := g.Next(); !next.IsZero() && !next.After(now) {
				ask, lost = g.Due(now, 20*time.Millisecond, ask[:0], lost[:0])
				for _, again := range ask {
					g.Received(again, now)
				}
			}
		}
	})
	if allocations != 0 {
		t.Fatalf("%v allocations per 100 packets", allocations)
	}
}

// FuzzNACK steps a generator through arbitrary arrivals. Requests are ascending and for missing packets, and every
// missing packet ends once.
func FuzzNACK(f *testing.F) {
	f.Add([]byte{0, 1, 0, 4, 3, 20, 0, 2, 1, 30, 3, 100, 3, 200})
	f.Add([]byte{0, 10, 1, 40, 3, 50, 0, 5, 1, 2, 2, 3, 3, 255, 3, 255, 3, 255})
	f.Add([]byte{0, 200, 0, 200, 0, 200, 0, 200, 0, 200, 3, 1, 3, 255, 3, 255})
	f.Fuzz(func(t *testing.T, script []byte) {
		cfg := DefaultConfig().NACK
		cfg.MaxMissing = 256
		g := NewNACKGenerator(cfg)
		now, highest := start, int64(1000)
		ended := map[int64]bool{}
		for ; len(script) >= 2; script = script[2:] {
			switch n := int64(script[1]); script[0] % 4 {
			case 0:
				highest += n%16*n%16 + 1
				g.Received(highest, now)
			case 1:
				g.Expect(highest+n-20, now)
			case 2:
				if g.Received(highest-n, now) == Recovered {
					ended[highest-n] = true
				}
			case 3:
				now = now.Add(time.Duration(n) * time.Millisecond / 4)
				ask, lost := g.Due(now, time.Duration(n%60)*time.Millisecond, nil, nil)
				if !slices.IsSorted(ask) {
					t.Fatalf("requests are %v", ask)
				}
				for _, sequence := range ask {
					if ended[sequence] && sequence <= highest {
						t.Fatalf("%d is requested, but arrived", sequence)
					}
				}
				if next := g.Next(); !next.IsZero() && next.Before(now) && len(ask)+len(lost) == 0 {
					if again, gone := g.Due(now, 0, nil, nil); len(again)+len(gone) == 0 && g.Next().Equal(next) {
						t.Fatalf("wants to be stepped at %v, but does nothing", next.Sub(start))
					}
				}
			}
			if len(g.missing) > cfg.MaxMissing || len(g.dropped) > cfg.MaxMissing || g.live > len(g.missing) ||
				g.fresh > len(g.missing) || g.live < 0 {
				t.Fatalf("%d entries, %d dropped, %d missing, %d asked for", len(g.missing), len(g.dropped),
					g.live, g.fresh)
			}
			if s := g.Stats(); s.Missing < s.Reordered+s.Recovered+s.Lost+uint64(g.live) {
				t.Fatalf("counts do not add up: %+v and %d missing", s, g.live)
			}
		}
		for range 20 {
			now = now.Add(100 * time.Millisecond)
			g.Due(now, 0, nil, nil)
		}
		if g.Missing() != 0 || !g.Next().IsZero() {
			t.Fatalf("%d packets are missing for ever", g.Missing())
		}
	})
}

func BenchmarkNACKInOrder(b *testing.B) {
	g := NewNACKGenerator(DefaultConfig().NACK)
	sequence, now := int64(0), start
	b.ReportAllocs()
	for b.Loop() {
		sequence++
		now = now.Add(100 * time.Microsecond)
		g.Received(sequence, now)
		g.Expect(sequence|127, now)
		if next := g.Next(); !next.IsZero() && !next.After(now) {
			g.Due(now, 0, nil, nil)
		}
	}
}
