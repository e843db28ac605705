package paths

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// hostile steps a selector with values from bytes: reports that pass the validation of package wire but are otherwise
// arbitrary, times that jump, orders and interfaces at any moment.
type hostile struct{ data []byte }

func (h *hostile) byte() byte {
	if len(h.data) == 0 {
		return 0
	}
	b := h.data[0]
	h.data = h.data[1:]
	return b
}

func (h *hostile) uint16() uint16 { return uint16(h.byte())<<8 | uint16(h.byte()) }

func (h *hostile) report() *wire.Report {
	r := &wire.Report{Serial: uint32(h.uint16()), Seen: h.byte()&1 == 0, Newest: uint32(h.uint16()) << 16}
	for i := range r.Paths {
		if h.byte()&1 == 0 {
			continue
		}
		p := &r.Paths[i]
		p.Copies, p.Beats = h.uint16(), h.byte()
		p.InTime, p.Slow, p.Lost = min(h.uint16(), p.Copies), min(h.uint16(), p.Copies), min(h.uint16(), p.Copies)
		p.BeatsInTime = min(h.byte(), p.Beats)
		p.Delay, p.Spread = h.uint16(), h.uint16()
	}
	for range h.byte() % wire.MaxReportRows {
		sent := h.byte() | 1<<(h.byte()%8)
		long := h.uint16()
		r.Rows = append(r.Rows, wire.Row{Sent: sent, InTime: h.byte() & sent, Short: min(h.uint16(), long), Long: long})
	}
	return r
}

// FuzzSelector checks that no report, time or order makes the set empty, names a path that does not exist, or exceeds
// the limit of probes.
func FuzzSelector(f *testing.F) {
	f.Add([]byte{3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Add([]byte{255, 3, 3, 3, 3, 0, 0, 0, 0, 255, 255, 255, 255, 2, 1, 0, 2, 0, 2, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &hostile{data}
		paths := int(h.byte()%wire.MaxPaths) + 1
		s := NewSelector(Config{Paths: paths, Deadline: time.Duration(h.byte()) * ms})
		exist := Set(1<<paths - 1)
		now := time.Duration(0)
		for len(h.data) > 0 {
			switch h.byte() % 8 {
			case 0:
				s.Start(now)
			case 1:
				s.Stop(now)
			case 2:
				s.Available(Set(h.byte()), now)
			case 3:
				now += time.Duration(int16(h.uint16())) * time.Second
			default:
				s.Apply(h.report(), now)
			}
			now += time.Duration(h.byte()) * ms
			d := s.Step(now)
			if d.Set == 0 || !exist.contains(d.Set|d.Probes) || d.Set&d.Probes != 0 {
				t.Fatalf("of paths %v, the set is %v and the probes are %v", exist, d.Set, d.Probes)
			}
			if d.Divisor < minProbeDivisor || d.Divisor&(d.Divisor-1) != 0 || 100*d.Probes.Len() > int(d.Divisor) {
				t.Fatalf("probes of %v every %d packets", d.Probes, d.Divisor)
			}
			states := s.Paths()
			for i, p := range states {
				if (p.State == Active) != d.Set.Has(i) {
					t.Fatalf("the set is %v, and path %d is %v", d.Set, i, p.State)
				}
			}
			if len(states) != paths {
				t.Fatalf("%d of %d paths have a state", len(states), paths)
			}
			for _, c := range s.Changes() {
				if !exist.Has(c.Path) {
					t.Fatalf("path %d of %v has changed", c.Path, exist)
				}
			}
		}
	})
}

// FuzzObserver checks that no sequence of samples, hellos and calls gives a report that is invalid, or whose Selector
// fails.
func FuzzObserver(f *testing.F) {
	f.Add([]byte{20, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 200, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &hostile{data}
		o := NewObserver(1, time.Duration(h.byte())*ms)
		s := NewSelector(Config{Paths: 4})
		now := time.Duration(0)
		for len(h.data) > 0 {
			switch h.byte() % 8 {
			case 0:
				now += time.Duration(h.uint16()) * ms
			case 1:
				o.Lost()
			case 2:
				o.SetDivisor(1 << (h.byte() % 8))
			case 3:
				o.Beat(h.byte(), uint32(h.uint16())<<h.byte(), now)
			case 4:
				o.Due(now)
				r := o.Report(now)
				body, err := r.AppendBinary(nil)
				if err != nil || len(body) > wire.MaxReportSize {
					t.Fatalf("%d bytes: %v", len(body), err)
				}
				s.Apply(&r, now)
				s.Step(now)
			default:
				o.Add(Sample{Flow: h.byte(), Epoch: uint16(h.byte() & 1), Path: h.byte(), Set: Set(h.byte()),
					Number: uint32(h.uint16()) << (h.byte() & 16), Sent: uint32(h.uint16()) << (h.byte() & 15),
					Arrived: now})
			}
		}
	})
}

// TestAlternatingReports checks that reports which contradict each other every 20 ms change the set at most as often as
// the waiting times allow: two copies leave after 250 ms, and join again with the next report.
func TestAlternatingReports(t *testing.T) {
	s := NewSelector(Config{Paths: 3})
	good := []wire.Row{{Sent: 7, InTime: 7, Short: 100, Long: 1000}}
	bad := []wire.Row{{Sent: 7, InTime: 0, Short: 100, Long: 1000}}
	changes := 0
	for i := range 3000 {
		now := time.Duration(i) * 20 * ms
		r := wire.Report{Serial: uint32(i + 1), Rows: good}
		if i%2 == 1 {
			r.Rows = bad
		}
		for p := range 3 {
			r.Paths[p] = wire.PathReport{Copies: 1000, InTime: uint16(1000 - 1000*(i%2)), Lost: uint16(1000 * (i % 2))}
		}
		s.Apply(&r, now)
		s.Start(now)
		changes += len(s.Changes())
	}
	if limit := 60 * 1000 / 250 * 4; changes > limit {
		t.Errorf("%d changes within 60 s, the limit is %d", changes, limit)
	}
}
