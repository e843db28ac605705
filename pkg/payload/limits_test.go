package payload

import (
	"errors"
	"testing"

	"github.com/volsfu/volsfu/test/race"
)

func TestLimits(t *testing.T) {
	t.Run("frame bytes", func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.MaxFrameBytes = 4999
		r := NewReassembler(cfg)
		if _, err := tryPush(
			r,
			packetsOf(t, Descriptor{}, testData(5000))[0],
			start,
		); !errors.Is(err, ErrTooLarge) ||
			r.Stats().TooLarge != 1 {
			t.Fatalf("error is %v", err)
		}
	})
	t.Run("frames", func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.MaxFrames = 3
		r := NewReassembler(cfg)
		packet := packetsOf(t, Descriptor{}, testData(5000))[0]
		for _, number := range []uint32{10, 12, 11, 13} {
			setFrame(packet, number)
			push(t, r, packet, start)
		}
		setFrame(packet, 9)
		if _, err := tryPush(r, packet, start); !errors.Is(err, ErrNoRoom) {
			t.Fatalf("an older frame took room: %v", err)
		}
		if next := r.Next(); !next.Equal(start) {
			t.Fatalf("eviction is reported at %v", next)
		}
		given := r.Expire(start, nil)
		if len(given) != 1 || given[0].Number != 10 || !given[0].Evicted || r.Stats().NoRoom != 1 {
			t.Fatalf("given up: %+v, %+v", given, r.Stats())
		}
	})
	t.Run("bytes", func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.MaxBytes = 20 * len(slab{})
		r := NewReassembler(cfg)
		// One packet per slab of huge frames: the most memory that a sender can occupy with few
		// packets.
		for number := range uint32(8) {
			d := Descriptor{Source: uint16(SourceFragments(MaxFrameBytes)), Frame: number, Length: MaxFrameBytes}
			for index := 0; index < 8*slabFragments; index += slabFragments {
				d.Index = uint16(index)
				if _, err := r.Push(&d, make([]byte, FragmentSize), start); err != nil {
					t.Fatal(err)
				}
				if r.held > cfg.MaxBytes {
					t.Fatalf("%d bytes held", r.held)
				}
			}
		}
		if stats := r.Stats(); stats.Evicted != 6 {
			t.Fatalf("stats are %+v", stats)
		}
		// A frame must not evict itself, and a frame without a fragment is removed.
		d := Descriptor{Source: uint16(SourceFragments(MaxFrameBytes)), Frame: 5, Length: MaxFrameBytes}
		for index := 0; index < 8; index++ {
			d.Index = uint16(index)
			if _, err := r.Push(&d, make([]byte, FragmentSize), start); err != nil && !errors.Is(err, ErrNoRoom) {
				t.Fatal(err)
			}
		}
		if got := len(r.partials); got != 2 {
			t.Fatalf("%d frames under way", got)
		}
	})
}

// TestNoAllocations expects that neither side allocates in the steady state.
func TestNoAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("skipped: the race detector makes pools allocate")
	}
	data := testData(150_000)
	var f Fragmenter
	buffer := make([]byte, 0, MaxPacketSize)
	r := NewReassembler(DefaultConfig())
	number := uint32(0)
	allocations := testing.AllocsPerRun(200, func() {
		number++
		if err := f.Begin(Descriptor{Frame: number}, data); err != nil {
			t.Fatal(err)
		}
		for i := range f.Packets() {
			packet, err := f.AppendPacket(buffer, i)
			if err != nil {
				t.Fatal(err)
			}
			if frame := push(t, r, packet, start); frame != nil {
				frame.Release()
			}
		}
	})
	// A garbage collection may empty the pools; one allocation per 132 packets would be visible.
	if allocations >= 1 {
		t.Fatalf("%v allocations per frame", allocations)
	}
}

func BenchmarkFragment(b *testing.B) {
	data := testData(150_000)
	var f Fragmenter
	buffer := make([]byte, 0, MaxPacketSize)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := f.Begin(Descriptor{}, data); err != nil {
			b.Fatal(err)
		}
		for i := range f.Packets() {
			if _, err := f.AppendPacket(buffer, i); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkReassemble(b *testing.B) {
	packets := packetsOf(b, Descriptor{}, testData(150_000))
	r := NewReassembler(DefaultConfig())
	number := uint32(0)
	b.ReportAllocs()
	b.SetBytes(150_000)
	for b.Loop() {
		number++
		for _, packet := range packets {
			setFrame(packet, number)
			if frame := push(b, r, packet, start); frame != nil {
				frame.Release()
			}
		}
	}
}
