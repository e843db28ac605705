package switching

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// ledger records and checks the decisions of a Switcher.
type ledger struct {
	t         *testing.T
	s         *Switcher
	checked   int64              // numbers below have been resolved
	stands    map[int64]input    // output number → result of Resolve when the number was reserved
	plans     map[int64]plan     // output number → the packet for which the number was reserved
	share     float64            // last argument of SetParity
	sent      map[int64]Verdict  // by output number
	frameOf   map[int64]frameKey // by output number
	delivered map[input]bool
	feeder    map[frameKey]TrackID
	selected  time.Duration
	overruns  bool
	ended     map[frameKey]TrackID
}

type input struct {
	track    TrackID
	sequence int64
}

// plan is the packet for which the Switcher reserved a number, and the share of parity at the time.
type plan struct {
	by    *Packet
	share float64
}

type frameKey struct {
	group uint64
	frame int64
}

func newLedger(t *testing.T, s *Switcher, first int64) *ledger {
	return &ledger{
		t: t, s: s, checked: first, stands: map[int64]input{}, plans: map[int64]plan{}, sent: map[int64]Verdict{},
		frameOf:   map[int64]frameKey{},
		delivered: map[input]bool{}, feeder: map[frameKey]TrackID{}, ended: map[frameKey]TrackID{},
	}
}

func (l *ledger) packet(p *Packet, src Source, v Verdict) error {
	l.delivered[input{p.Track, p.Sequence}] = true
	for ; l.checked < l.s.next; l.checked++ {
		track, sequence, ok := l.s.Resolve(uint16(l.checked))
		if !ok {
			return fmt.Errorf("number %d is reserved, but Resolve does not know it", l.checked)
		}
		l.stands[l.checked], l.plans[l.checked] = input{track, sequence}, plan{p, l.share}
	}
	if v.Action == Drop {
		return nil
	}
	number := l.s.sent.newest + int64(int16(v.Sequence-uint16(l.s.sent.newest)))
	if _, twice := l.sent[number]; twice {
		return fmt.Errorf("number %d was sent twice", number)
	}
	if want := (input{p.Track, p.Sequence}); l.stands[number] != want {
		return fmt.Errorf(
			"number %d was sent for %v, but stood for %v when it was reserved",
			number,
			want,
			l.stands[number],
		)
	}
	if track, sequence, ok := l.s.Resolve(v.Sequence); !ok || track != p.Track || sequence != p.Sequence {
		return fmt.Errorf(
			"Resolve(%d) = %d, %d, %t after sending %d, %d",
			v.Sequence,
			track,
			sequence,
			ok,
			p.Track,
			p.Sequence,
		)
	}
	if again, ok := l.s.ResolveMarker(v.Sequence, p); !ok || again != v.Marker {
		return fmt.Errorf("ResolveMarker(%d) = %t, %t after sending %t", v.Sequence, again, ok, v.Marker)
	}
	l.sent[number] = v
	if p.Framed {
		key := frameKey{src.Group, p.Frame}
		if before, begun := l.feeder[key]; begun && before != p.Track {
			return fmt.Errorf(
				"frame %d of group %d was sent from tracks %d and %d",
				p.Frame,
				src.Group,
				before,
				p.Track,
			)
		}
		if track, ended := l.ended[key]; ended && track == p.Track {
			return fmt.Errorf(
				"packet %d of frame %d of group %d was sent, which was ended",
				p.Sequence,
				p.Frame,
				src.Group,
			)
		}
		l.feeder[key], l.frameOf[number] = p.Track, key
	}
	return nil
}

// released removes the records of numbers that an Overrun released.
func (l *ledger) released() {
	l.overruns = true
	for ; l.checked > l.s.next; l.checked-- {
		delete(l.stands, l.checked-1)
	}
}

// end ends one of the latest frames of any track.
func (l *ledger) end(w *world, now time.Time) {
	p := w.events[w.rng.IntN(len(w.events))].packet
	for range 20 {
		// Mostly an incomplete frame.
		if newest := l.frameOf[l.s.sent.newest]; p.Frame <= newest.frame && p.Frame > newest.frame-3 {
			break
		}
		p = w.events[w.rng.IntN(len(w.events))].packet
	}
	first, last, begun := l.s.Planned(p)
	next := l.s.next
	if !p.Framed || !l.s.End(p, now) {
		return
	}
	l.ended[frameKey{w.tracks[p.Track-1].source.Group, p.Frame}] = p.Track
	if start, end := p.extent(); !begun || first > last || first < start || last > end {
		l.t.Errorf("frame %d was ended with %d to %d planned, begun %t", p.Frame, first, last, begun)
	}
	// Only numbers of the frame itself are released.
	if given := next - l.s.next; given > last-first+1 || l.s.next <= l.s.sent.newest {
		l.t.Errorf(
			"%d numbers were given back of %d, the next is %d after the highest sent",
			given,
			last-first+1,
			l.s.next-l.s.sent.newest,
		)
	}
	l.released()
}

// finish checks the invariants of the whole stream.
func (l *ledger) finish(first int64) error {
	var before Verdict
	var frame frameKey
	for n := first; n < l.s.next; n++ {
		v, sent := l.sent[n]
		if !sent {
			if l.delivered[l.stands[n]] && !l.overruns {
				return fmt.Errorf("number %d was never sent, although its packet %v came", n, l.stands[n])
			}
			continue
		}
		if before.Action == Forward && int32(v.Timestamp-before.Timestamp) < 0 {
			return fmt.Errorf("timestamp goes from %d to %d at number %d", before.Timestamp, v.Timestamp, n)
		}
		if l.frameOf[n] != frame && before.Action == Forward && v.Timestamp == before.Timestamp {
			return fmt.Errorf("frames %v and %v at number %d have the same timestamp", frame, l.frameOf[n], n)
		}
		if l.frameOf[n].group == frame.group && l.frameOf[n].frame < frame.frame {
			return fmt.Errorf("frame %d follows %d at number %d", l.frameOf[n].frame, frame.frame, n)
		}
		before, frame = v, l.frameOf[n]
	}
	return nil
}

// parity checks that every frame has exactly its planned numbers, and the marker on the last of
// them.
func (l *ledger) parity(first int64, facts map[input]*Packet) error {
	for n := first; n < l.s.next; n++ {
		p := facts[l.stands[n]]
		if v, sent := l.sent[n]; !p.Framed && sent && v.Marker != p.Marker {
			return fmt.Errorf("number %d: marker is %t, expected %t", n, v.Marker, p.Marker)
		}
		if !p.Framed {
			continue
		}
		last := p.FramePackets - 1
		if by := l.plans[n].by; p.SourcePackets > 0 && by.Frame == p.Frame && by.Track == p.Track {
			last = min(last, p.SourcePackets+int(math.Ceil(l.plans[n].share*float64(p.SourcePackets)))-1)
		}
		index := int(p.Sequence - p.FrameStart)
		if index > last {
			return fmt.Errorf(
				"number %d stands for packet %d of frame %d, expected %d at most",
				n,
				index,
				p.Frame,
				last,
			)
		}
		if v, sent := l.sent[n]; sent && v.Marker != (index == last) {
			return fmt.Errorf(
				"number %d, packet %d of frame %d: marker is %t, expected it on %d",
				n,
				index,
				p.Frame,
				v.Marker,
				last,
			)
		}
		if index == last || n+1 == l.s.next {
			continue
		}
		if next := facts[l.stands[n+1]]; next.Track != p.Track || next.Sequence != p.Sequence+1 {
			return fmt.Errorf(
				"number %d stands for %v, expected packet %d of frame %d",
				n+1,
				l.stands[n+1],
				index+1,
				p.Frame,
			)
		}
	}
	return nil
}
