package feedback

import (
	"slices"
	"testing"
	"time"
)

// repairRig is a stream of frames with 8 source and 4 parity packets, of which a part is sent. Every frame is sent
// within 10 ms.
type repairRig struct {
	g      *NACKGenerator
	r      FrameRepair
	now    time.Time
	next   int64
	frame  uint32
	asked  []int64
	source int
}

func newRepairRig() *repairRig {
	return &repairRig{g: NewNACKGenerator(DefaultConfig().NACK), now: start, next: 100, frame: 1<<32 - 2, source: 8}
}

// packet passes one packet of the current frame to the generator, and reports whether it completes the frame, given the
// number received before.
func (r *repairRig) packet(index int, last, completes bool) {
	p := FramePacket{
		Sequence: r.next + int64(index), Frame: r.frame, Index: index, Source: r.source, Packets: r.source + 4,
		Marker: last,
	}
	r.g.Received(p.Sequence, r.now)
	r.r.Received(r.g, p, r.now)
	if completes {
		r.r.Complete(r.g, p)
	}
	r.step()
}

func (r *repairRig) step() {
	if next := r.g.Next(); !next.IsZero() && !r.now.Before(next) {
		r.asked, _ = r.g.Due(r.now, 150*time.Millisecond, r.asked, nil)
	}
}

// send sends a frame with the given parity, except the lost packets. The next frame follows 33 ms later.
func (r *repairRig) send(parity int, lost ...int) {
	begin, came := r.now, 0
	for index := range r.source + parity {
		r.now = begin.Add(time.Duration(index) * time.Millisecond)
		if r.step(); slices.Contains(lost, index) {
			continue
		}
		came++
		r.packet(index, index == r.source+parity-1, came == r.source)
	}
	r.next += int64(r.source + parity)
	r.frame++
	for r.now.Before(begin.Add(32 * time.Millisecond)) {
		r.now = r.now.Add(time.Millisecond)
		r.step()
	}
}

func TestFrameRepair(t *testing.T) {
	type frame struct {
		parity int
		lost   []int
	}
	tests := []struct {
		name   string
		frames []frame
		asked  []int // of the last frame
	}{
		{"nothing lost", []frame{{2, nil}, {2, nil}}, nil},
		{"parity makes up for losses", []frame{{2, nil}, {2, []int{1, 5}}}, nil},
		{"the last packet makes up for it", []frame{{2, nil}, {2, []int{1, 8}}}, nil},
		{"too little parity", []frame{{2, nil}, {2, []int{1, 3, 5}}}, []int{1, 3, 5}},
		{"the marker is lost, too", []frame{{2, nil}, {2, []int{1, 3, 9}}}, []int{1, 3, 9}},
		{"lost parity is not missed", []frame{{2, nil}, {2, []int{8}}}, nil},
		{"nor is the marker", []frame{{2, nil}, {2, []int{8, 9}}}, nil},
		{"the end of the source packets is, and all with it", []frame{{2, nil}, {2, []int{6, 7, 8, 9}}},
			[]int{6, 7, 8, 9}},
		{"parity that is not sent is not waited for", []frame{{0, nil}, {0, []int{2}}}, []int{2}},
		{"nor asked for", []frame{{4, nil}, {0, []int{6, 7}}}, []int{6, 7}},
		{"parity that begins", []frame{{0, nil}, {1, []int{8}}, {1, []int{7}}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRepairRig()
			var first int64
			for _, f := range test.frames {
				first, r.asked = r.next, nil
				r.send(f.parity, f.lost...)
			}
			// The start of the next frame shows the end of the previous one.
			r.send(0)
			var got []int
			for _, number := range r.asked {
				got = append(got, int(number-first))
			}
			// A lost end is detected later than other losses.
			slices.Sort(got)
			if !slices.Equal(got, test.asked) {
				t.Errorf("asked for %v, expected %v", got, test.asked)
			}
		})
	}
}

// TestFrameRepairWaits: with parity, requests wait for the end of the frame; without, they do not.
func TestFrameRepairWaits(t *testing.T) {
	for _, parity := range []int{0, 2} {
		r := newRepairRig()
		r.send(parity)
		begin := r.now
		lost := []int{1, 2, 3}
		for index := range r.source + parity {
			r.now = begin.Add(time.Duration(index) * time.Millisecond)
			if slices.Contains(lost, index) {
				continue
			}
			r.packet(index, index == r.source+parity-1, false)
			if early := index < r.source+parity-1; early && parity > 0 && len(r.asked) > 0 {
				t.Fatalf("parity %d: asked for %v at packet %d", parity, r.asked, index)
			}
			if parity == 0 && index == 7 && len(r.asked) != len(lost) {
				t.Fatalf("parity %d: asked for %v at packet %d, expected three", parity, r.asked, index)
			}
		}
		if len(r.asked) != len(lost) {
			t.Errorf("parity %d: asked for %v, expected three", parity, r.asked)
		}
	}
}

// TestFrameRepairLate: a frame that is completed by its first retransmission, after a newer one began, needs no other,
// and later retransmissions count as recovered.
func TestFrameRepairLate(t *testing.T) {
	r := newRepairRig()
	r.send(2)
	first, number := r.next, r.frame
	r.send(2, 1, 3, 5)
	r.send(2)
	if want := []int64{first + 1, first + 3, first + 5}; !slices.Equal(r.asked, want) {
		t.Fatalf("asked for %v, expected %v", r.asked, want)
	}
	late := func(index int64, completes bool) Arrival {
		p := FramePacket{Sequence: first + index, Frame: number, Index: int(index), Source: 8, Packets: 12}
		arrival := r.g.Received(p.Sequence, r.now)
		if r.r.Received(r.g, p, r.now); completes {
			r.r.Complete(r.g, p)
		}
		return arrival
	}
	r.asked = nil
	if got := late(3, true); got != Recovered {
		t.Errorf("the first retransmission counts as %v", got)
	}
	for range 400 {
		r.now = r.now.Add(time.Millisecond)
		r.step()
	}
	if len(r.asked) > 0 {
		t.Errorf("asked for %v once the frame was complete", r.asked)
	}
	if s := r.g.Stats(); s.Recovered != 1 || s.Spared != 2 || s.Lost != 0 || s.Missing != 3 {
		t.Errorf("%+v, expected 3 missing, 1 recovered, 2 spared", s)
	}
}

// TestFrameRepairSkips omits frames, as a server does, and loses packets at the edge: packets between frames that are
// not consecutive may belong to either frame, and are requested.
func TestFrameRepairSkips(t *testing.T) {
	r := newRepairRig()
	r.send(2)
	r.frame += 3
	r.send(2)
	if len(r.asked) > 0 {
		t.Fatalf("asked for %v, though nothing is missing", r.asked)
	}
	first := r.next
	r.send(2, 9)
	r.frame++
	r.send(2)
	if want := []int64{first + 9}; !slices.Equal(r.asked, want) {
		t.Errorf("asked for %v, expected %v", r.asked, want)
	}
}

// FuzzFrameRepair passes arbitrary packets: whatever a sender claims, only missing packets are requested.
func FuzzFrameRepair(f *testing.F) {
	f.Add([]byte{1, 0, 8, 2, 1, 1, 8, 2, 3, 3, 8, 2, 1, 9, 8, 130})
	f.Add([]byte{5, 200, 1, 0, 250, 7, 255, 255, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		g := NewNACKGenerator(DefaultConfig().NACK)
		var r FrameRepair
		now, sequence := start, int64(1<<16)
		has := map[int64]bool{}
		for ; len(data) >= 4; data = data[4:] {
			now = now.Add(time.Duration(data[0]>>4) * time.Millisecond)
			sequence += int64(int8(data[0]<<4) >> 4)
			p := FramePacket{
				Sequence: sequence, Frame: uint32(data[0]>>2) * 1 << 26, Index: int(data[1]), Source: int(data[2]),
				Packets: int(data[2]) + int(data[3]&0x7f),
				Marker:  data[3]&0x80 != 0,
			}
			g.Received(sequence, now)
			has[sequence] = true
			r.Received(g, p, now)
			if data[1] == data[2] {
				r.Complete(g, p)
			}
			ask, _ := g.Due(now, time.Duration(data[3])*time.Millisecond, nil, nil)
			for _, number := range ask {
				if has[number] {
					t.Fatalf("requested %d, which arrived", number)
				}
			}
			if next := g.Next(); g.Missing() > 0 && next.IsZero() {
				t.Fatalf("%d packets are missing, and nothing will be done", g.Missing())
			}
		}
	})
}
