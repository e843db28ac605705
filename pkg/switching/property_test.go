package switching

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world contains the parameters that a simulation draws from its seed.
type world struct {
	rng    *rand.Rand
	tracks []*simulated
	events []event
	// lossless reports that every lost packet is repaired, so that in the end every packet was
	// delivered.
	lossless bool
	// parity reports that a part of every frame's packets is parity.
	parity bool
	// facts contains the facts of every packet.
	facts map[input]*Packet
}

// simulated is an incoming track. The tracks are three framed tracks of one Group, two of another,
// an opaque track and a track with key frames.
type simulated struct {
	source Source
	framed bool
	lag    time.Duration // after capture
	next   int64
	base   uint32 // of the timestamps
	// State of the track's reader.
	seen   bool
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
	w := &world{
		rng:      rand.New(rand.NewPCG(seed, 1)),
		lossless: seed%2 == 0,
		parity:   seed%4 < 2,
		facts:    map[input]*Packet{},
	}
	for i, src := range []Source{
		{1, 10, false}, {2, 10, false}, {3, 10, false}, {4, 20, false}, {5, 20, false}, {6, 30, false}, {7, 40, true},
	} {
		s := &simulated{
			source: src,
			framed: i < 5,
			next:   w.rng.Int64N(1 << 16),
			base:   uint32(src.Group) * 1_000_000_007,
		}
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

// frame sends the packets of one frame of one track to the network.
func (w *world) frame(s *simulated, frame int64, loss float64) {
	if w.rng.IntN(40) == 0 {
		return // the encoder was late
	}
	packets := 1 + w.rng.IntN(9)
	source := 0
	if w.parity {
		source = packets
		packets += w.rng.IntN(packets + 1)
	}
	start := s.next
	s.next += int64(packets)
	at := time.Duration(frame)*frameInterval + s.lag + time.Duration(w.rng.IntN(8))*time.Millisecond
	for i := range packets {
		p := &Packet{
			Track: s.source.Track, Sequence: start + int64(i), Timestamp: s.base + uint32(frame)*2970,
			Framed: s.framed, Key: !s.source.NeedsKey || frame%10 == 0, Marker: !s.framed && i == packets-1,
		}
		if s.framed {
			p.Frame, p.FrameStart, p.FramePackets, p.SourcePackets, p.Last = frame, start, packets, source,
				i == packets-1
		}
		w.facts[input{p.Track, p.Sequence}] = p
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

// read determines the facts that depend on the order of arrival, as the reader of the track would.
func (s *simulated) read(e event) Packet {
	p := *e.packet
	newer := !s.seen || e.frame > s.newest
	p.Opens = newer && (s.framed || e.head)
	if newer {
		s.seen, s.newest = true, e.frame
	}
	return p
}

// TestProperties checks the invariants in whole simulated conferences: random tracks, lags, losses,
// reordering, duplication and selections.
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
	// In a third of all worlds the caller loses or omits packets.
	lossy := seed%3 == 0
	// In another third it ends frames.
	ending := seed%3 == 1
	mean := 1 + w.rng.IntN(200)
	leaveOut := 0
	for _, e := range w.events {
		now := dawn.Add(e.at)
		if w.parity && w.rng.IntN(100) == 0 {
			l.share = []float64{0, 0.05, 0.25, 0.5, 2}[w.rng.IntN(5)]
			s.SetParity(l.share)
		}
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
		if ending && w.rng.IntN(100) == 0 {
			l.end(w, now)
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
	if err := l.finish(first); err != nil || l.overruns {
		return len(l.sent), switches, err
	}
	return len(l.sent), switches, l.parity(first, w.facts)
}
