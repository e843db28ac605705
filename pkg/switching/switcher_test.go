package switching

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

// TestWindow compares the ring of bits with a plain set.
func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		first := rng.Int64N(1 << 17)
		w, taken := window{words: new([windowSize / 64]uint64), newest: first - 1}, map[int64]bool{}
		newest := first - 1
		for range 20_000 {
			var n int64
			switch rng.IntN(20) {
			case 0:
				n = newest + 1 + rng.Int64N(3*windowSize)
			case 1:
				n = max(newest-rng.Int64N(2*windowSize), 0)
			case 2, 3, 4:
				n = max(newest-rng.Int64N(200), 0)
			default:
				n = newest + 1 + rng.Int64N(3)
			}
			want := n > newest-windowSize && !taken[n]
			if n < first {
				continue
			}
			if got := w.mark(n); got != want {
				t.Fatalf("take(%d) with newest %d = %t, expected %t", n, newest, got, want)
			}
			taken[n], newest = true, max(newest, n)
		}
	}
}

// TestSameTrackOtherGroup assigns the track that feeds the slot to another Group, as if its
// publication were announced again.
func TestSameTrackOtherGroup(t *testing.T) {
	s := New(Config{FirstTimestamp: 500})
	s.Select(Source{Track: 1, Group: 1}, dawn)
	frame := func(sequence, frame int64) Packet {
		return Packet{
			Track: 1, Sequence: sequence, Timestamp: uint32(3000 * frame), Framed: true, Frame: frame,
			FrameStart: sequence, FramePackets: 1, Last: true, Opens: true, Key: true,
		}
	}
	p := frame(10, 100)
	s.Packet(&p, dawn)
	s.Select(Source{Track: 1, Group: 2}, dawn)
	p = frame(11, 1)
	v := s.Packet(&p, dawn.Add(time.Second))
	if want := (Verdict{Action: Forward, Sequence: 1, Timestamp: 90_500, Marker: true, Switched: true}); v != want {
		t.Errorf("got %+v, expected %+v", v, want)
	}
	if got := s.Active(); got.Group != 2 {
		t.Errorf("active source is %+v, expected group 2", got)
	}
}

// TestUnbegunFrames switches at frames that do not directly follow the last frame that the slot has
// begun.
func TestUnbegunFrames(t *testing.T) {
	s := New(Config{})
	frame := func(track TrackID, frame int64) Verdict {
		p := Packet{
			Track: track, Sequence: frame, Timestamp: uint32(3000 * frame), Framed: true, Frame: frame,
			FrameStart: frame, FramePackets: 1, Last: true, Opens: true, Key: true,
		}
		return s.Packet(&p, dawn)
	}
	for _, step := range []struct {
		name    string
		source  Source
		frame   int64
		unbegun int
	}{
		{"the first", Source{Track: 1, Group: 1}, 100, 0},
		{"the next of another", Source{Track: 2, Group: 1}, 101, 0},
		{"one of another after three", Source{Track: 1, Group: 1}, 105, 3},
		{"of another group", Source{Track: 3, Group: 2}, 200, 0},
		{"of the first group again", Source{Track: 1, Group: 1}, 150, 0},
		{"of the other group again", Source{Track: 3, Group: 2}, 250, 0},
	} {
		s.Select(step.source, dawn)
		if v := frame(step.source.Track, step.frame); v.Action != Forward || !v.Switched || v.Unbegun != step.unbegun {
			t.Errorf("%s: got %+v, expected a switch with %d frames unbegun", step.name, v, step.unbegun)
		}
	}
	s.Select(Source{}, dawn)
	s.Select(Source{Track: 3, Group: 2}, dawn)
	if v := frame(3, 260); !v.Switched || v.Unbegun != 9 {
		t.Errorf("after a pause: got %+v, expected a switch with 9 frames left out", v)
	}
	s.Skip(dawn)
	if v := frame(3, 263); v.Switched || v.Unbegun != 2 {
		t.Errorf("after frames that were skipped: got %+v, expected 2 frames left out, and no switch", v)
	}
	if v := frame(3, 265); v.Switched || v.Unbegun != 0 {
		t.Errorf("after a frame that was lost: got %+v, expected nothing of note", v)
	}
}

// TestHistoryIsBounded switches at every packet and resolves the first numbers.
func TestHistoryIsBounded(t *testing.T) {
	s := New(Config{})
	for i := range int64(200) {
		src := Source{Track: TrackID(1 + i%2), Group: 1}
		s.Select(src, dawn)
		p := Packet{
			Track: src.Track, Sequence: 1000 + i, Timestamp: uint32(3000 * i), Framed: true, Frame: i,
			FrameStart: 1000 + i, FramePackets: 1, Last: true, Opens: true, Key: true,
		}
		if v := s.Packet(&p, dawn); v.Action != Forward {
			t.Fatalf("packet %d was dropped", i)
		}
	}
	for n := range 200 {
		track, sequence, ok := s.Resolve(uint16(n))
		if want := n >= 200-runLimit; ok != want {
			t.Fatalf("Resolve(%d) ok is %t, expected %t", n, ok, want)
		}
		if ok && (track != TrackID(1+n%2) || sequence != int64(1000+n)) {
			t.Fatalf("Resolve(%d) = %d, %d", n, track, sequence)
		}
	}
}

func TestNothingBeforeTheFirstPacket(t *testing.T) {
	s := New(Config{})
	s.Overrun(dawn)
	s.Skip(dawn)
	if _, _, ok := s.Resolve(0); ok {
		t.Error("Resolve(0) is ok before anything was sent")
	}
	if _, ok := s.MapTimestamp(1, 0); ok {
		t.Error("MapTimestamp is ok before anything was sent")
	}
	s.Select(Source{Track: 1}, dawn)
	s.Select(Source{}, dawn)
	if src, pending := s.Pending(); pending {
		t.Errorf("%+v is pending after off", src)
	}
}

// TestAllocations expects no allocations on the hot path.
func TestAllocations(t *testing.T) {
	for _, source := range []int{0, 104} {
		s, p := busy()
		p.SourcePackets = source
		if n := testing.AllocsPerRun(1000, func() {
			advance(p)
			s.Packet(p, dawn)
		}); n != 0 {
			t.Errorf("%v allocations per packet with %d source packets, expected none", n, source)
		}
	}
}

// TestSharesThatAreNone sets parity shares that count as 0, for a frame with parity.
func TestSharesThatAreNone(t *testing.T) {
	for _, share := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		s, p := busy()
		s.SetParity(0.1)
		s.SetParity(share)
		p.SourcePackets = 104
		forwarded := 0
		for range p.FramePackets {
			if advance(p); s.Packet(p, dawn).Action == Forward {
				forwarded++
			}
		}
		if forwarded != 104 {
			t.Errorf("share %v: %d packets were forwarded, expected 104", share, forwarded)
		}
	}
}

// TestPlannedParity expects decimal shares: 7 % of 100 packets are 7.
func TestPlannedParity(t *testing.T) {
	tests := []struct {
		share                   float64
		source, parity, packets int64
	}{
		{
			0.07,
			100,
			25,
			107,
		}, {0.07, 101, 25, 109}, {0.01, 1, 1, 2}, {0.25, 4, 1, 5}, {0.25, 4, 0, 4}, {0.05, 20, 5, 21}, {0, 9, 3, 9},
		{7, 9, 3, 12},
	}
	for _, test := range tests {
		p := Packet{
			Framed:        true,
			FrameStart:    10,
			SourcePackets: int(test.source),
			FramePackets:  int(test.source + test.parity),
		}
		if first, last := p.planned(test.share); first != 10 || last != 10+test.packets-1 {
			t.Errorf(
				"%v of %d + %d packets are %d to %d, expected 10 to %d",
				test.share,
				test.source,
				test.parity,
				first,
				last,
				10+test.packets-1,
			)
		}
	}
}

// busy returns a Switcher that forwards a framed track with 130 packets per frame (150 kB), and its
// next packet.
func busy() (*Switcher, *Packet) {
	s := New(Config{})
	s.Select(Source{Track: 1, Group: 1}, dawn)
	return s, &Packet{Track: 1, Framed: true, Frame: 1, FrameStart: 1, FramePackets: 130, Key: true}
}

func advance(p *Packet) {
	p.Sequence++
	if p.Sequence == p.FrameStart+int64(p.FramePackets) {
		p.Frame++
		p.FrameStart = p.Sequence
		p.Timestamp += 3000
	}
	p.Opens = p.Sequence == p.FrameStart
	p.Last = p.Sequence == p.FrameStart+int64(p.FramePackets)-1
}

func BenchmarkPacketInOrder(b *testing.B) {
	s, p := busy()
	b.ReportAllocs()
	for b.Loop() {
		advance(p)
		if s.Packet(p, dawn).Action != Forward {
			b.Fatal("dropped")
		}
	}
}

// BenchmarkPacketParity omits 26 packets of every frame of 130, so that every frame is a run.
func BenchmarkPacketParity(b *testing.B) {
	s, p := busy()
	p.SourcePackets = 104
	b.ReportAllocs()
	for b.Loop() {
		advance(p)
		if v := s.Packet(p, dawn); (v.Action == Forward) != (p.Sequence < p.FrameStart+104) {
			b.Fatal("the plan was not kept")
		}
	}
}

func BenchmarkPacketForeign(b *testing.B) {
	s := New(Config{})
	s.Select(Source{Track: 1, Group: 1}, dawn)
	p := &Packet{Track: 1, Key: true}
	b.ReportAllocs()
	for b.Loop() {
		p.Sequence++
		p.Marker = p.Sequence%10 == 9
		p.Opens = p.Sequence%10 == 0
		if p.Opens {
			p.Timestamp += 3000
		}
		s.Packet(p, dawn)
	}
}

// BenchmarkPacketLate repeatedly repairs a packet of a track that the slot left ten switches ago.
// The search is the same each time.
func BenchmarkPacketLate(b *testing.B) {
	s, p := busy()
	advance(p)
	s.Packet(p, dawn)
	for i := range int64(10) {
		src := Source{Track: TrackID(2 + i), Group: 1}
		s.Select(src, dawn)
		s.Packet(&Packet{
			Track: src.Track, Framed: true, Frame: 2 + i, FramePackets: 1, Opens: true, Key: true,
		}, dawn)
	}
	p.Opens = false
	b.ReportAllocs()
	for b.Loop() {
		s.Packet(p, dawn)
	}
}

// BenchmarkPacketForeignToSlot passes a packet of a track that is not assigned to the slot.
func BenchmarkPacketForeignToSlot(b *testing.B) {
	s, p := busy()
	for range 64 {
		advance(p)
		s.Packet(p, dawn)
	}
	p.Track = 99
	b.ReportAllocs()
	for b.Loop() {
		s.Packet(p, dawn)
	}
}

func BenchmarkSwitch(b *testing.B) {
	s, p := busy()
	p.FramePackets = 1
	b.ReportAllocs()
	for b.Loop() {
		advance(p)
		p.Track = 3 - p.Track
		s.Select(Source{Track: p.Track, Group: 1}, dawn)
		if s.Packet(p, dawn).Action != Forward {
			b.Fatal("dropped")
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	s, p := busy()
	for range 1000 {
		advance(p)
		s.Packet(p, dawn)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := s.Resolve(500); !ok {
			b.Fatal("unknown")
		}
	}
}

// TestIdleSwitcherIsSmall: a Switcher has a ring of runs and one of numbers, 7 kB, only once a source has begun. A
// receiver has tens of slots, most of which are idle.
func TestIdleSwitcherIsSmall(t *testing.T) {
	const most = 1024
	if size := unsafe.Sizeof(Switcher{}); size > most {
		t.Errorf("an idle Switcher has %d bytes, expected at most %d", size, most)
	}
	if s := New(Config{}); s.history.runs != nil || s.sent.words != nil {
		t.Error("a new Switcher has rings")
	}
}
