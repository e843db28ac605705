package chunks

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/allocations"
)

var begin = time.Unix(0, 0)

// frameOf returns a frame of the given length with unique content.
func frameOf(number uint32, length int) []byte {
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(i/ChunkSize+int(number)) | 1
	}
	return data
}

// TestTranscripts: each word of the input is FRAME.CHUNK of a frame with 3 chunks, in order of arrival, one per
// millisecond. Each line of the output is a closed frame.
func TestTranscripts(t *testing.T) {
	tests := []struct{ name, input, output string }{
		{"in order", "1.0 1.1 1.2 2.0 2.1 2.2 3.0",
			"at 3: 1 of 3000 bytes, 3 chunks, 0 holes, last at 2\n" +
				"at 6: 2 of 3000 bytes, 3 chunks, 0 holes, last at 5\n"},
		{"within a frame in any order", "1.2 1.0 1.1 2.0", "at 3: 1 of 3000 bytes, 3 chunks, 0 holes, last at 2\n"},
		{"a chunk lost", "1.0 1.2 2.0", "at 2: 1 of 3000 bytes, 2 chunks, 1 holes, last at 1\n"},
		{"the end lost, which is not detected", "1.0 1.1 2.0", "at 2: 1 of 2800 bytes, 2 chunks, 0 holes, last at 1\n"},
		{"the beginning lost", "1.1 1.2 2.0", "at 2: 1 of 3000 bytes, 2 chunks, 1 holes, last at 1\n"},
		{"a chunk after its frame was closed", "1.0 1.1 2.0 1.2 2.1 2.2 3.0",
			"at 2: 1 of 2800 bytes, 2 chunks, 0 holes, last at 1\n" +
				"at 6: 2 of 3000 bytes, 3 chunks, 0 holes, last at 5\n"},
		{"twice", "1.0 1.0 1.1 1.2 2.0", "at 4: 1 of 3000 bytes, 3 chunks, 0 holes, last at 3\n"},
		{"frames lost", "1.0 1.1 1.2 9.0 9.1", "at 3: 1 of 3000 bytes, 3 chunks, 0 holes, last at 2\n"},
		{"the number wraps", "4294967295.0 4294967295.1 4294967295.2 0.0",
			"at 3: 4294967295 of 3000 bytes, 3 chunks, 0 holes, last at 2\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := NewAssembler(1 << 20)
			var got strings.Builder
			for at, word := range strings.Fields(test.input) {
				var number uint32
				var index int
				if _, err := fmt.Sscanf(word, "%d.%d", &number, &index); err != nil {
					t.Fatal(err)
				}
				packet := Append(nil, number, frameOf(number, 3000), index)
				f, ok, err := a.Push(packet, begin.Add(time.Duration(at)*time.Millisecond))
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					continue
				}
				fmt.Fprintf(&got, "at %d: %d of %d bytes, %d chunks, %d holes, last at %d\n",
					f.Closed.Sub(begin).Milliseconds(), f.Number, len(f.Data), f.Chunks, f.Holes,
					f.Last.Sub(begin).Milliseconds())
				want := frameOf(f.Number, 3000)[:len(f.Data)]
				for i := range f.Data {
					if f.Data[i] != want[i] && f.Data[i] != 0 {
						t.Fatalf("frame %d holds bytes of another frame", f.Number)
					}
				}
				if f.Holes == 0 && !bytes.Equal(f.Data, want) {
					t.Errorf("frame %d differs from the sent frame", f.Number)
				}
			}
			if got.String() != test.output {
				t.Errorf("expected\n%sgot\n%s", test.output, got.String())
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for length, want := range map[int]int{0: 1, 1: 1, 1400: 1, 1401: 2, 350000: 250} {
		if got := Count(length); got != want {
			t.Errorf("%d bytes are %d chunks, expected %d", length, got, want)
		}
	}
	a := NewAssembler(3000)
	if _, _, err := a.Push(make([]byte, 7), begin); !errors.Is(err, ErrPacket) {
		t.Errorf("too short: %v", err)
	}
	if _, _, err := a.Push(make([]byte, MaxPacketSize+1), begin); !errors.Is(err, ErrPacket) {
		t.Errorf("too long: %v", err)
	}
	if _, _, err := a.Push(Append(nil, 1, frameOf(1, 3001), 2), begin); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, _, err := a.Push([]byte{1, 0, 0, 0, 1, 0, 0, 0}, begin); !errors.Is(err, ErrPacket) {
		t.Errorf("a second chunk without data: %v", err)
	}
	if s := a.Stats(); s.Malformed != 4 || s.Packets != 4 {
		t.Errorf("got %+v", s)
	}
	// A frame without data counts as well.
	if _, _, err := a.Push(Append(nil, 1, nil, 0), begin); err != nil {
		t.Fatal(err)
	}
	f, ok, err := a.Push(Append(nil, 2, nil, 0), begin)
	if err != nil || !ok || len(f.Data) != 0 || f.Chunks != 1 || f.Holes != 0 {
		t.Errorf("got %+v, %v, %v", f, ok, err)
	}
}

// TestRestart: after restartAfter chunks with lower numbers, the assembler accepts that the sender has restarted.
func TestRestart(t *testing.T) {
	a := NewAssembler(1 << 20)
	a.Push(Append(nil, 1000, frameOf(0, 3000), 0), begin)
	frame := frameOf(0, 3000)
	for i := range restartAfter + 3 {
		_, _, _ = a.Push(Append(nil, uint32(i/3), frame, i%3), begin)
	}
	if s := a.Stats(); s.Restarts != 1 || s.Late != restartAfter-1 {
		t.Errorf("got %+v", s)
	}
}

// TestAllocations: a stream of frames allocates no memory once its largest frame has arrived.
func TestAllocations(t *testing.T) {
	a := NewAssembler(1 << 20)
	frame := frameOf(0, 100000)
	packet := make([]byte, 0, MaxPacketSize)
	number := uint32(0)
	send := func() {
		number++
		for i := range Count(len(frame)) {
			packet = Append(packet[:0], number, frame, i)
			if _, _, err := a.Push(packet, begin); err != nil {
				t.Fatal(err)
			}
		}
	}
	send()
	send()
	send()
	if n := allocations.PerCall(10, send); n != 0 {
		t.Errorf("%g allocations per frame", n)
	}
}

// FuzzAssembler: for any input, memory stays within the limit, and the counts of closed frames add up. Input is cut
// into packets by their first byte.
func FuzzAssembler(f *testing.F) {
	var stream []byte
	for i := range 3 {
		stream = append(stream, 20)
		stream = append(stream, Append(nil, uint32(i), frameOf(0, 12), 0)...)
	}
	f.Add(stream)
	f.Add([]byte{8, 1, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 10 * ChunkSize
		a := NewAssembler(limit)
		for len(stream) > 0 {
			n := min(int(stream[0]), len(stream)-1)
			packet := stream[1 : 1+n]
			stream = stream[1+n:]
			frame, ok, err := a.Push(packet, begin)
			if ok && err != nil {
				t.Fatal("a frame and an error")
			}
			if ok && (len(frame.Data) > limit || frame.Chunks < 1 || frame.Holes < 0 ||
				frame.Chunks+frame.Holes < Count(len(frame.Data))) {
				t.Fatalf("closed %d bytes of %d chunks with %d holes", len(frame.Data), frame.Chunks, frame.Holes)
			}
			if cap(a.data) > 4*limit || len(a.seen) > limit/ChunkSize/64+1 {
				t.Fatalf("%d bytes of memory, expected at most about %d", cap(a.data), limit)
			}
		}
	})
}
