package paths

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	// slotTime is the resolution of the windows of a report.
	slotTime = 20 * time.Millisecond
	// shortSlots and longSlots are the windows: 100 ms and 1 s.
	shortSlots = 5
	longSlots  = 50
	// delayUnit is the unit of delays in a report.
	delayUnit = 100 * time.Microsecond
)

// history counts what happened in the slots of the long window. The zero value is ready for use.
type history struct {
	slots [longSlots]slot
	last  int64 // newest slot, in slotTime since the clock's origin
}

// slot has the counts of one slotTime.
type slot struct {
	numbers, missed, slow int
	paths                 [wire.MaxPaths]pathSlot
	rows                  []wire.Row // Long is the count
}

type pathSlot struct {
	copies, inTime, slow, lost int
	beats, beatsInTime         int
	delays                     int
	sum, least, greatest       time.Duration
}

// at returns the slot of a time. Times before the newest slot count in the newest one.
func (h *history) at(now time.Duration) *slot {
	current := max(int64(now/slotTime), h.last)
	for i := max(h.last+1, current-longSlots+1); i <= current; i++ {
		s := &h.slots[i%longSlots]
		*s = slot{rows: s.rows[:0]}
	}
	h.last = current
	return &h.slots[current%longSlots]
}

// judged counts a number at its deadline.
func (h *history) judged(now time.Duration, n *number) {
	s := h.at(now)
	s.numbers++
	if n.inTime == 0 {
		s.missed++
	}
	for i := range s.paths {
		if !n.set.Has(i) {
			continue
		}
		s.paths[i].copies++
		if n.inTime.Has(i) {
			s.paths[i].inTime++
		}
		if !n.usual.Has(i) {
			s.paths[i].slow++
		}
	}
	s.rows = countRow(s.rows, wire.Row{Sent: uint8(n.set), InTime: uint8(n.inTime), Long: 1})
}

// slow counts a number whose first copy should have arrived.
func (h *history) slow(now time.Duration, slow bool) {
	if s := h.at(now); slow {
		s.slow++
	}
}

// lost counts copies that have not arrived.
func (h *history) lost(now time.Duration, lost Set) {
	s := h.at(now)
	for i := range s.paths {
		if lost.Has(i) {
			s.paths[i].lost++
		}
	}
}

func (h *history) beat(now time.Duration, path int, inTime bool) {
	p := &h.at(now).paths[path]
	p.beats++
	if inTime {
		p.beatsInTime++
	}
}

func (h *history) delay(now time.Duration, path int, delay time.Duration) {
	p := &h.at(now).paths[path]
	if p.delays == 0 {
		p.least, p.greatest = delay, delay
	}
	p.delays++
	p.sum += delay
	p.least, p.greatest = min(p.least, delay), max(p.greatest, delay)
}

// countRow adds the counts of a row to the row with the same sets.
func countRow(rows []wire.Row, row wire.Row) []wire.Row {
	for i := range rows {
		if rows[i].Sent == row.Sent && rows[i].InTime == row.InTime {
			rows[i].Short = capped(int(rows[i].Short) + int(row.Short))
			rows[i].Long = capped(int(rows[i].Long) + int(row.Long))
			return rows
		}
	}
	return append(rows, row)
}

// capped returns n as a field of a report.
func capped(n int) uint16 { return uint16(min(n, math.MaxUint16)) }

// summarise writes the windows that end now into a report. Delays are stated above base.
func (h *history) summarise(now, base time.Duration, r *wire.Report) {
	h.at(now)
	var total slot
	for i := range int64(min(longSlots, h.last+1)) {
		s := &h.slots[(h.last-i)%longSlots]
		short := i < shortSlots
		if short {
			total.numbers += s.numbers
			total.missed += s.missed
			total.slow += s.slow
		}
		for _, row := range s.rows {
			if short {
				row.Short = row.Long
			}
			total.rows = countRow(total.rows, row)
		}
		for j := range s.paths {
			total.paths[j].add(&s.paths[j])
		}
	}
	r.Numbers, r.Missed, r.Slow = capped(total.numbers), capped(total.missed), capped(total.slow)
	for i := range total.paths {
		r.Paths[i] = total.paths[i].report(base)
	}
	if len(total.rows) > wire.MaxReportRows {
		total.rows = mostTelling(total.rows)
	}
	r.Rows = total.rows
}

// mostTelling returns MaxReportRows rows: those with the fewest paths in time first, since missed numbers are few and
// decide, then those with the largest counts.
func mostTelling(rows []wire.Row) []wire.Row {
	slices.SortFunc(rows, func(a, b wire.Row) int {
		return cmp.Or(cmp.Compare(Set(a.InTime).Len(), Set(b.InTime).Len()), cmp.Compare(b.Long, a.Long))
	})
	return rows[:wire.MaxReportRows]
}

func (p *pathSlot) add(o *pathSlot) {
	if o.delays > 0 {
		if p.delays == 0 {
			p.least, p.greatest = o.least, o.greatest
		}
		p.least, p.greatest = min(p.least, o.least), max(p.greatest, o.greatest)
	}
	p.copies += o.copies
	p.inTime += o.inTime
	p.slow += o.slow
	p.lost += o.lost
	p.beats += o.beats
	p.beatsInTime += o.beatsInTime
	p.delays += o.delays
	p.sum += o.sum
}

// report returns the entry of a report. The copies of which the loss is known are older than those judged at the
// deadline, so that the counts are bounded by each other.
func (p *pathSlot) report(base time.Duration) wire.PathReport {
	r := wire.PathReport{Copies: capped(p.copies), Beats: uint8(min(p.beats, math.MaxUint8))}
	r.InTime = min(capped(p.inTime), r.Copies)
	r.Slow = min(capped(p.slow), r.Copies)
	r.Lost = min(capped(p.lost), r.Copies)
	r.BeatsInTime = uint8(min(p.beatsInTime, int(r.Beats)))
	if p.delays > 0 {
		mean := p.sum / time.Duration(p.delays)
		r.Delay = capped(int(max(0, mean-base) / delayUnit))
		r.Spread = capped(int((p.greatest - p.least) / delayUnit))
	}
	return r
}
