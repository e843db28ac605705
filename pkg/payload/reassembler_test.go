package payload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// start is the beginning of virtual time.
var start = time.Unix(1_795_188_600, 0)

// after returns the virtual time ms milliseconds after start.
func after(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func testData(size int) []byte {
	data := make([]byte, size)
	// Read never fails.
	_, _ = rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), byte(size >> 16)}).Read(data)
	return data
}

func packetsOf(t testing.TB, d Descriptor, data []byte) [][]byte {
	t.Helper()
	var f Fragmenter
	if err := f.Begin(d, data); err != nil {
		t.Fatal(err)
	}
	packets := make([][]byte, f.Packets())
	for i := range packets {
		packet, err := f.AppendPacket(nil, i)
		if err != nil {
			t.Fatal(err)
		}
		packets[i] = packet
	}
	return packets
}

func setFrame(packet []byte, number uint32) { binary.BigEndian.PutUint32(packet[8:], number) }

// push parses and pushes a packet that must be accepted.
func push(t testing.TB, r *Reassembler, packet []byte, now time.Time) *Frame {
	t.Helper()
	frame, err := tryPush(r, packet, now)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

func tryPush(r *Reassembler, packet []byte, now time.Time) (*Frame, error) {
	var d Descriptor
	data, err := d.Unmarshal(packet)
	if err != nil {
		return nil, err
	}
	return r.Push(&d, data, now)
}

func TestRoundTrip(t *testing.T) {
	sizes := map[int]int{0: 1, 1: 1, 1143: 1, 1144: 1, 1145: 2, 2288: 2, 150_000: 132, 3_500_000: 3060, 8_000_000: 6994}
	for size, fragments := range sizes {
		for _, order := range []string{"in order", "reversed", "shuffled"} {
			t.Run(fmt.Sprintf("%d bytes %s", size, order), func(t *testing.T) {
				data := testData(size)
				packets := packetsOf(t, Descriptor{Quality: 2, Frame: 77}, data)
				if len(packets) != fragments {
					t.Fatalf("%d packets, expected %d", len(packets), fragments)
				}
				at := make([]int, len(packets))
				for i := range at {
					at[i] = i
				}
				switch order {
				case "reversed":
					for i := range at {
						at[i] = len(at) - 1 - i
					}
				case "shuffled":
					at = rand.New(rand.NewPCG(3, 4)).Perm(len(at))
				}
				r := NewReassembler(DefaultConfig())
				for n, i := range at {
					frame := push(t, r, packets[i], after(n))
					if (frame != nil) != (n == len(at)-1) {
						t.Fatalf("packet %d of %d: frame is %v", n, len(at), frame)
					}
					if frame == nil {
						continue
					}
					if !bytes.Equal(frame.Data, data) {
						t.Fatal("data differs")
					}
					if frame.Number != 77 || frame.Extended != 77 || frame.Quality != 2 ||
						frame.Prefixed || frame.Late ||
						frame.Packets != fragments || frame.Recovered != 0 ||
						!frame.First.Equal(after(0)) ||
						!frame.Last.Equal(after(n)) {
						t.Fatalf("frame is %+v", frame)
					}
				}
				if r.held != 0 || len(r.partials) != 0 {
					t.Fatalf("%d bytes and %d frames left", r.held, len(r.partials))
				}
			})
		}
	}
}

func TestPrefixedFrames(t *testing.T) {
	prefix := Prefix{FourCC: [4]byte{'r', 'a', 'w', ' '}, Capture: start.UTC()}
	for _, size := range []int{0, 1, 1132, 1133, 5000} {
		data := testData(size)
		packets := packetsOf(t, Descriptor{Prefixed: true, Frame: 1}, append(prefix.AppendTo(nil), data...))
		r := NewReassembler(DefaultConfig())
		var frame *Frame
		for _, packet := range packets {
			frame = push(t, r, packet, start)
		}
		if frame == nil || !frame.Prefixed || frame.Prefix != prefix || !bytes.Equal(frame.Data, data) {
			t.Fatalf("%d bytes: frame is %+v", size, frame)
		}
	}
}

func TestFragmenterRefuses(t *testing.T) {
	var f Fragmenter
	for _, test := range []struct {
		d    Descriptor
		size int
	}{{Descriptor{Prefixed: true}, 11}, {Descriptor{Parity: 256}, 0}, {Descriptor{}, 65535*FragmentSize + 1}} {
		if err := f.Begin(test.d, make([]byte, test.size)); !errors.Is(err, ErrFrame) {
			t.Errorf("%+v with %d bytes: %v", test.d, test.size, err)
		}
	}
	if err := f.Begin(Descriptor{}, make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	for _, index := range []int{-1, 2} {
		if _, err := f.AppendPacket(nil, index); !errors.Is(err, ErrFrame) {
			t.Errorf("fragment %d: %v", index, err)
		}
	}
}

// TestZeroCopy expects that source fragments refer to the caller's data.
func TestZeroCopy(t *testing.T) {
	data := testData(3000)
	var f Fragmenter
	if err := f.Begin(Descriptor{}, data); err != nil {
		t.Fatal(err)
	}
	_, fragment, err := f.Fragment(1)
	if err != nil || &fragment[0] != &data[FragmentSize] || len(fragment) != FragmentSize {
		t.Fatalf("fragment of %d bytes was copied (%v)", len(fragment), err)
	}
}

func TestDuplicatesAndSurplus(t *testing.T) {
	packets := packetsOf(t, Descriptor{Parity: 1}, testData(3000))
	r := NewReassembler(DefaultConfig())
	frames := 0
	for round := range 2 {
		for _, packet := range packets {
			for range 2 {
				if push(t, r, packet, after(round)) != nil {
					frames++
				}
			}
		}
	}
	// Three source fragments complete the frame; the first two arrive twice before.
	if stats := r.Stats(); frames != 1 || stats.Duplicates != 2 || stats.Surplus != 16-5 || stats.Packets != 16 {
		t.Fatalf("%d frames, %+v", frames, stats)
	}
}

func TestContradiction(t *testing.T) {
	first := packetsOf(t, Descriptor{Frame: 5}, testData(3000))
	r := NewReassembler(DefaultConfig())
	push(t, r, first[0], start)
	for name, packets := range map[string][][]byte{
		"length":  packetsOf(t, Descriptor{Frame: 5}, testData(2999)),
		"quality": packetsOf(t, Descriptor{Frame: 5, Quality: 1}, testData(3000)),
		"parity":  packetsOf(t, Descriptor{Frame: 5, Parity: 1}, testData(3000)),
		"prefix":  packetsOf(t, Descriptor{Frame: 5, Prefixed: true}, testData(3000)),
	} {
		if _, err := tryPush(r, packets[1], start); !errors.Is(err, ErrContradiction) {
			t.Errorf("%s: %v", name, err)
		}
	}
	push(t, r, first[1], start)
	if frame := push(t, r, first[2], start); frame == nil || r.Stats().Contradictions != 4 {
		t.Fatalf("the first description did not win: %v, %+v", frame, r.Stats())
	}
}

func TestLateFrames(t *testing.T) {
	r := NewReassembler(DefaultConfig())
	one, two := packetsOf(
		t,
		Descriptor{Frame: 0xffffffff},
		testData(2000),
	), packetsOf(
		t,
		Descriptor{Frame: 0},
		testData(2000),
	)
	push(t, r, one[0], start)
	push(t, r, two[0], start)
	newer := push(t, r, two[1], start)
	older := push(t, r, one[1], start)
	if newer == nil || newer.Late || newer.Extended != 1<<32 {
		t.Fatalf("newer frame is %+v", newer)
	}
	if older == nil || !older.Late || older.Extended != 1<<32-1 || r.Stats().Late != 1 {
		t.Fatalf("older frame is %+v", older)
	}
}

func TestExpire(t *testing.T) {
	r := NewReassembler(DefaultConfig())
	if !r.Next().IsZero() {
		t.Fatal("nothing under way, but a deadline")
	}
	a, b := packetsOf(
		t,
		Descriptor{Frame: 1, Quality: 2},
		testData(5000),
	), packetsOf(
		t,
		Descriptor{Frame: 2},
		testData(5000),
	)
	push(t, r, a[0], after(0))
	push(t, r, a[3], after(20))
	push(t, r, b[0], after(30))
	if next := r.Next(); !next.Equal(after(150)) {
		t.Fatalf("next is %v", next.Sub(start))
	}
	if given := r.Expire(after(149), nil); len(given) != 0 {
		t.Fatalf("given up early: %+v", given)
	}
	given := r.Expire(after(150), nil)
	want := GivenUp{Number: 1, Extended: 1, Quality: 2, First: after(0), Source: 5, Missing: 3}
	if len(given) != 1 || given[0] != want {
		t.Fatalf("given up: %+v, expected %+v", given, want)
	}
	if push(t, r, a[1], after(151)) != nil || r.Stats().Surplus != 1 {
		t.Fatal("a frame given up was begun again")
	}
	r.SetDeadline(250 * time.Millisecond)
	if given := r.Expire(after(279), nil); len(given) != 0 {
		t.Fatalf("given up before the new deadline: %+v", given)
	}
	if given := r.Expire(after(280), nil); len(given) != 1 || r.held != 0 || !r.Next().IsZero() {
		t.Fatalf("given up %+v, %d bytes left", given, r.held)
	}
}

func TestRestart(t *testing.T) {
	r := NewReassembler(DefaultConfig())
	packet := packetsOf(t, Descriptor{}, testData(100))[0]
	show := func(number uint32) *Frame {
		setFrame(packet, number)
		frame, err := tryPush(r, packet, start)
		if err != nil && !errors.Is(err, ErrStale) {
			t.Fatal(err)
		}
		return frame
	}
	for _, number := range []uint32{100_000, 100_001, 5, 100_002, 5, 6, 100_003, 99_900} {
		if frame := show(number); (frame == nil) != (number < 1000) {
			t.Fatalf("frame %d: %+v", number, frame)
		}
	}
	for _, number := range []uint32{7, 8} {
		if show(number) != nil {
			t.Fatalf("frame %d accepted at once", number)
		}
	}
	if frame := show(9); frame == nil || frame.Late || frame.Extended != 9 {
		t.Fatalf("restarted stream is refused: %+v", frame)
	}
	if stats := r.Stats(); stats.Restarts != 1 || stats.Stale != 5 {
		t.Fatalf("stats are %+v", stats)
	}
	// A jump ahead is a pause and is accepted immediately.
	if frame := show(2_000_000); frame == nil {
		t.Fatal("a jump ahead is refused")
	}
	r.Reset()
	if frame := show(3); frame == nil || frame.Late {
		t.Fatal("a stream that was reset is refused")
	}
}

// TestRelease expects that frames may be released by other goroutines and that their memory is
// reused.
func TestRelease(t *testing.T) {
	r := NewReassembler(DefaultConfig())
	packets := packetsOf(t, Descriptor{}, testData(5000))
	var decoders sync.WaitGroup
	for number := range uint32(200) {
		for _, packet := range packets {
			setFrame(packet, number)
			if frame := push(t, r, packet, start); frame != nil {
				decoders.Go(frame.Release)
			}
		}
	}
	decoders.Wait()
	if frames := r.Stats().Frames; frames != 200 {
		t.Fatalf("%d frames", frames)
	}
}

// TestLongStream expects that old frame numbers leave the window and that frames in reused memory
// start clean.
func TestLongStream(t *testing.T) {
	prefix := Prefix{FourCC: [4]byte{'r', 'a', 'w', ' '}, Capture: start}
	first := packetsOf(t, Descriptor{Prefixed: true, Parity: 1}, prefix.AppendTo(nil))
	plain := packetsOf(t, Descriptor{}, nil)
	r := NewReassembler(DefaultConfig())
	for number := range uint32(3 * windowFrames) {
		packet, recovered := plain[0], 0
		if number%2 == 0 {
			packet, recovered = first[1], 1
		}
		setFrame(packet, number)
		frame := push(t, r, packet, start)
		if frame == nil || frame.Recovered != recovered || frame.Prefixed != (recovered == 1) ||
			frame.Prefixed != (frame.Prefix != Prefix{}) {
			t.Fatalf("frame %d is %+v", number, frame)
		}
		frame.Release()
	}
}

func TestExtendFrame(t *testing.T) {
	for _, test := range []struct {
		near  int64
		frame uint32
		want  int64
	}{
		{0, 0, 0}, {10, 9, 9}, {1<<32 - 1, 0, 1 << 32}, {1 << 32, 0xffffffff, 1<<32 - 1},
		{5<<32 + 7, 8, 5<<32 + 8}, {0, 0xffffffff, -1},
	} {
		if got := ExtendFrame(test.near, test.frame); got != test.want {
			t.Errorf("ExtendFrame(%d, %d) = %d, expected %d", test.near, test.frame, got, test.want)
		}
	}
}
