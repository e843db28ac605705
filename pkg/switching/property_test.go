package switching

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world is what a simulation draws from its seed.
type world struct {
	rng    *rand.Rand
	tracks []*simulated
	events []event
	// lossless says that whatever is lost is repaired, so that in the end every packet was delivered.
	lossless bool
}

// simulated is an incoming track: three framed tracks of one Group, two of another, an opaque one and one with key frames.
type simulated struct {
	source Source
	framed bool
	lag    time.Duration // behind capture
	next   int64
	base   uint32 // of timestamps
	// What the track's reader remembers.
	heard  bool
	newest int64
}

type event struct {
	at     time.Duration
	packet *Packet
	frame  int64
	head   bool
}

const (
	simulatedFrames = 150
	frameInterval   = 33 * time.Millisecond
)

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), lossless: seed%2 == 0}
	for i, src := range []Source{
		{1, 10, false}, {2, 10, false}, {3, 10, false}, {4, 20, false}, {5, 20, false}, {6, 30, false}, {7, 40, true},
	} {
		s := &simulated{source: src, framed: i < 5, next: w.rng.Int64N(1 << 16), base: uint32(src.Group) * 1_000_000_007}
		s.lag = time.Duration(w.rng.IntN(60)) * time.Millisecond
		w.tracks = append(w.tracks, s)
	}
	loss := []float64{0, 0.01, 0.1, 0.3}[w.rng.IntN(4)]
	for frame := range int64(simulatedFrames) {
		for _, s := range w.tracks {
			w.frame(s, frame, loss)
		}
	}
	slices.SortStableFunc(w.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return w
}

// frame puts the packets of one frame of one track on the network.
func (w *world) frame(s *simulated, frame int64, loss float64) {
	if w.rng.IntN(40) == 0 {
		return // the encoder was behind
	}
	packets := 1 + w.rng.IntN(9)
	start := s.next
	s.next += int64(packets)
	at := time.Duration(frame)*frameInterval + s.lag + time.Duration(w.rng.IntN(8))*time.Millisecond
	for i := range packets {
		p := &Packet{
			Track: s.source.Track, Sequence: start + int64(i), Timestamp: s.base + uint32(frame)*2970,
			Framed: s.framed, Key: !s.source.NeedsKey || frame%10 == 0, Marker: !s.framed && i == packets-1,
		}
		if s.framed {
			p.Frame, p.FrameStart, p.FramePackets, p.Last = frame, start, packets, i == packets-1
		}
		e := event{at: at + time.Duration(i)*time.Millisecond, packet: p, frame: frame, head: i == 0}
		if w.rng.IntN(10) == 0 {
			e.at += time.Duration(w.rng.IntN(20)) * time.Millisecond // reordered
		}
		if w.rng.Float64() < loss {
			if !w.lossless && w.rng.IntN(3) == 0 {
				continue
			}
			e.at += time.Duration(20+w.rng.IntN(130)) * time.Millisecond // repaired
		}
		w.events = append(w.events, e)
		if w.rng.IntN(20) == 0 {
			e.at += time.Duration(w.rng.IntN(60)) * time.Millisecond // duplicated
			w.events = append(w.events, e)
		}
	}
}

// read establishes the facts that depend on the order of arrival, as the reader of the track would.
func (s *simulated) read(e event) Packet {
	p := *e.packet
	newer := !s.heard || e.frame > s.newest
	p.Opens = newer && (s.framed || e.head)
	if newer {
		s.heard, s.newest = true, e.frame
	}
	return p
}

// ledger records what a Switcher said, and checks it.
type ledger struct {
	t         *testing.T
	s         *Switcher
	checked   int64              // numbers below have been resolved
	stands    map[int64]input    // output number → what Resolve said when the number was reserved
	sent      map[int64]Verdict  // by output number
	frameOf   map[int64]frameKey // by output number
	delivered map[input]bool
	feeder    map[frameKey]TrackID
	selected  time.Duration
	overruns  bool
}

type input struct {
	track    TrackID
	sequence int64
}

type frameKey struct {
	group uint64
	frame int64
}

func newLedger(t *testing.T, s *Switcher, first int64) *ledger {
	return &ledger{
		t: t, s: s, checked: first, stands: map[int64]input{}, sent: map[int64]Verdict{}, frameOf: map[int64]frameKey{},
		delivered: map[input]bool{}, feeder: map[frameKey]TrackID{},
	}
}

func (l *ledger) packet(p *Packet, src Source, v Verdict) error {
	l.delivered[input{p.Track, p.Sequence}] = true
	for ; l.checked < l.s.next; l.checked++ {
		track, sequence, ok := l.s.Resolve(uint16(l.checked))
		if !ok {
			return fmt.Errorf("number %d is reserved, but Resolve does not know it", l.checked)
		}
		l.stands[l.checked] = input{track, sequence}
	}
	if v.Action == Drop {
		return nil
	}
	number := l.s.sent.newest + int64(int16(v.Sequence-uint16(l.s.sent.newest)))
	if _, twice := l.sent[number]; twice {
		return fmt.Errorf("number %d was sent twice", number)
	}
	if want := (input{p.Track, p.Sequence}); l.stands[number] != want {
		return fmt.Errorf("number %d was sent for %v, but stood for %v when it was reserved", number, want, l.stands[number])
	}
	if track, sequence, ok := l.s.Resolve(v.Sequence); !ok || track != p.Track || sequence != p.Sequence {
		return fmt.Errorf("Resolve(%d) = %d, %d, %t after sending %d, %d", v.Sequence, track, sequence, ok, p.Track, p.Sequence)
	}
	if want := p.Marker || p.Framed && p.Last; v.Marker != want {
		return fmt.Errorf("number %d: marker is %t, expected %t", number, v.Marker, want)
	}
	l.sent[number] = v
	if p.Framed {
		key := frameKey{src.Group, p.Frame}
		if before, begun := l.feeder[key]; begun && before != p.Track {
			return fmt.Errorf("frame %d of group %d was sent from tracks %d and %d", p.Frame, src.Group, before, p.Track)
		}
		l.feeder[key], l.frameOf[number] = p.Track, key
	}
	return nil
}

// released forgets what was recorded about numbers that an Overrun gave back.
func (l *ledger) released() {
	l.overruns = true
	for ; l.checked > l.s.next; l.checked-- {
		delete(l.stands, l.checked-1)
	}
}

// finish checks what holds over the whole stream.
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

// TestProperties holds whole simulated conferences against the rules: random tracks, lags, losses, reordering, duplication and selections.
func TestProperties(t *testing.T) {
	sent, switches := 0, 0
	for seed := range uint64(150) {
		n, m, err := simulate(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sent, switches = sent+n, switches+m
	}
	if sent < 50_000 || switches < 2_000 {
		t.Errorf("%d packets were sent and %d switches happened, too few to prove anything", sent, switches)
	}
}

func simulate(t *testing.T, seed uint64) (sent, switches int, err error) {
	w := newWorld(seed)
	first := int64(w.rng.IntN(1 << 16))
	s := New(Config{FirstSequence: uint16(first), FirstTimestamp: w.rng.Uint32()})
	l := newLedger(t, s, first)
	// In a third of all worlds the caller loses or leaves out packets.
	lossy := seed%3 == 0
	mean := 1 + w.rng.IntN(200)
	leaveOut := 0
	for _, e := range w.events {
		now := dawn.Add(e.at)
		if w.rng.IntN(mean) == 0 {
			src := Source{}
			if w.rng.IntN(6) > 0 {
				src = w.tracks[w.rng.IntN(len(w.tracks))].source
			}
			s.Select(src, now)
			l.selected = e.at
		}
		track := w.tracks[e.packet.Track-1]
		p := track.read(e)
		if lossy && w.rng.IntN(300) == 0 {
			leaveOut = 1 + w.rng.IntN(30)
			if w.rng.IntN(2) == 0 {
				s.Skip(now)
			} else {
				s.Overrun(now)
			}
			l.released()
		}
		if leaveOut > 0 && p.Track == s.Active().Track {
			leaveOut--
			continue
		}
		v := s.Packet(&p, now)
		if v.Switched {
			switches++
		}
		if err := l.packet(&p, track.source, v); err != nil {
			return 0, 0, fmt.Errorf("at %v, track %d, frame %d: %w", e.at, p.Track, e.frame, err)
		}
		if _, pending := s.Pending(); pending && e.at-l.selected > time.Second {
			return 0, 0, fmt.Errorf("at %v: a selection has been pending for more than a second", e.at)
		}
	}
	return len(l.sent), switches, l.finish(first)
}
