package bridge

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// start is the time at which tests begin. Only differences matter.
var start = time.Unix(1_795_188_600, 0)

// someFrame returns a frame of the given size in bytes, including the header.
func someFrame(size int, seed uint64) []byte {
	header := vr2gather.NewFrameHeader(vr2gather.CodecRawPoints, size-vr2gather.FrameHeaderSize, start)
	data := header.Append(make([]byte, 0, size))
	random := rand.New(rand.NewPCG(seed, 0))
	for len(data) < size {
		data = append(data, byte(random.Uint32()))
	}
	return data
}

// cut returns the packets of a frame.
func cut(number uint32, data []byte) []vr2gather.Packet {
	var packets []vr2gather.Packet
	for p := range vr2gather.Cut(vr2gather.Packet{Kind: volumetric.KindVideo, Frame: number}, data) {
		packets = append(packets, p)
	}
	return packets
}

// expectDropped compares the counts of a tally with the expected counts. Missing counts are 0.
func expectDropped(t *testing.T, tally *Tally, want map[Drop]int64) {
	t.Helper()
	for d := range Reasons {
		if got := tally.Count(d); got != want[d] {
			t.Errorf("%d %v, expected %d", got, d, want[d])
		}
	}
}

func TestAssemblyTakesPacketsInAnyOrder(t *testing.T) {
	tally := &Tally{}
	a := NewAssembly(1, tally)
	random := rand.New(rand.NewPCG(1, 2))
	for number := range uint32(50) {
		data := someFrame(vr2gather.FrameHeaderSize+random.IntN(60_000), uint64(number))
		packets := cut(number, data)
		random.Shuffle(len(packets), func(i, j int) { packets[i], packets[j] = packets[j], packets[i] })
		for i := range packets {
			got := a.Push(0, &packets[i], start)
			if (got != nil) != (i == len(packets)-1) {
				t.Fatalf("frame %d: packet %d of %d completes it: %v", number, i+1, len(packets), got != nil)
			}
			if got != nil && !bytes.Equal(got, data) {
				t.Fatalf("frame %d is not what was sent", number)
			}
		}
	}
	expectDropped(t, tally, nil)
	if a.memory != 0 || len(a.incomplete) != 0 {
		t.Errorf("%d bytes of %d frames are kept, expected nothing", a.memory, len(a.incomplete))
	}
}

func TestAssemblyDropsContradictions(t *testing.T) {
	data := someFrame(4000, 1)
	packets := cut(7, data)
	with := func(p vr2gather.Packet, change func(p *vr2gather.Packet)) vr2gather.Packet {
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		before []vr2gather.Packet
		packet vr2gather.Packet
		want   Drop
	}{
		"again": {packets[:2], packets[1], DropDuplicate},
		"within another": {packets[:1], with(packets[0],
			func(p *vr2gather.Packet) { p.Offset, p.Data = 5, p.Data[5:9] }), DropDuplicate},
		"in part": {packets[:1], with(packets[1], func(p *vr2gather.Packet) { p.Offset -= 10 }),
			DropContradiction},
		"other length": {packets[:1], with(packets[1], func(p *vr2gather.Packet) { p.Length++ }),
			DropContradiction},
		"too long":            {nil, with(packets[0], func(p *vr2gather.Packet) { p.Length = maxFrame + 1 }), DropSize},
		"of a complete frame": {packets, packets[2], DropLate},
		"older than that":     {packets, with(packets[0], func(p *vr2gather.Packet) { p.Frame -= 3 }), DropLate},
	} {
		t.Run(name, func(t *testing.T) {
			tally := &Tally{}
			a := NewAssembly(1, tally)
			for i := range test.before {
				a.Push(0, &test.before[i], start)
			}
			if a.Push(0, &test.packet, start) != nil {
				t.Fatal("a frame is complete")
			}
			expectDropped(t, tally, map[Drop]int64{test.want: 1})
			// A refused packet must not affect the other packets.
			complete := len(test.before) == len(packets)
			for i := len(test.before); i < len(packets); i++ {
				if got := a.Push(0, &packets[i], start); got != nil {
					complete = bytes.Equal(got, data)
				}
			}
			if !complete {
				t.Error("the frame is not complete, or not what was sent")
			}
		})
	}
	tally := &Tally{}
	NewAssembly(1, tally).Push(1, &packets[0], start)
	expectDropped(t, tally, map[Drop]int64{DropTrack: 1})
}

func TestAssemblyDropsIncompleteFrames(t *testing.T) {
	tally := &Tally{}
	a := NewAssembly(2, tally)
	first := func(track int, number uint32, now time.Time) {
		packets := cut(number, someFrame(3000, 1))
		a.Push(track, &packets[0], now)
	}
	first(0, 1, start)
	first(0, 2, start.Add(time.Millisecond))
	first(0, 3, start.Add(2*time.Millisecond)) // the third incomplete frame: 1 is dropped
	first(1, 9, start.Add(completionTimeout))
	expectDropped(t, tally, map[Drop]int64{DropIncomplete: 1})
	a.Expire(start.Add(completionTimeout + 2*time.Millisecond)) // 2 and 3 are dropped
	expectDropped(t, tally, map[Drop]int64{DropIncomplete: 3})
	first(0, 3, start.Add(completionTimeout+3*time.Millisecond))
	expectDropped(t, tally, map[Drop]int64{DropIncomplete: 3, DropLate: 1})
	for _, p := range cut(10, someFrame(3000, 2)) { // 10 is complete, so packets of 9 are lost
		a.Push(1, &p, start.Add(completionTimeout))
	}
	expectDropped(t, tally, map[Drop]int64{DropIncomplete: 4, DropLate: 1})
}

func TestAssemblyFollowsARestartedConnector(t *testing.T) {
	tally := &Tally{}
	a := NewAssembly(1, tally)
	for _, step := range []struct {
		number uint32
		taken  bool
	}{{5000, true}, {5001, true}, {0, true}, {1, true}, {2, true}, {0xffff_ffff, false}, {0, false}, {3, true}} {
		p := cut(step.number, someFrame(100, 1))[0]
		if (a.Push(0, &p, start) != nil) != step.taken {
			t.Errorf("frame %d is taken: %v, expected %v", step.number, !step.taken, step.taken)
		}
	}
	expectDropped(t, tally, map[Drop]int64{DropLate: 2})
}

// TestAssemblyHoldsNoMoreThanItsBudget announces frames of the maximum size, one after the other, on many tracks.
func TestAssemblyHoldsNoMoreThanItsBudget(t *testing.T) {
	tally := &Tally{}
	const tracks = 300
	a := NewAssembly(tracks, tally)
	for number := range uint32(10) {
		for track := range tracks {
			p := vr2gather.Packet{Kind: volumetric.KindVideo, Frame: number, Length: maxFrame, Offset: number * 1144,
				Data: make([]byte, 1144)}
			a.Push(track, &p, start)
			if a.memory > maxMemory || len(a.incomplete) > maxIncomplete*tracks {
				t.Fatalf("%d bytes of %d frames are held", a.memory, len(a.incomplete))
			}
		}
	}
	held := 0
	for _, f := range a.incomplete {
		held += len(f.data)
	}
	if held != a.memory || tally.Count(DropIncomplete) == 0 {
		t.Errorf("%d bytes are held, %d in the books; %d frames were given up", held, a.memory,
			tally.Count(DropIncomplete))
	}
	// Pieces with a gap after each one take only their part of the budget.
	tally = &Tally{}
	a = NewAssembly(1, tally)
	for i := range uint32(2 * maxPieces) {
		a.Push(0, &vr2gather.Packet{Kind: volumetric.KindVideo, Length: maxFrame, Offset: 4 * i, Data: []byte{1}},
			start)
	}
	expectDropped(t, tally, map[Drop]int64{DropContradiction: maxPieces})
}
