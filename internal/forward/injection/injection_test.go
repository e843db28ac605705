package injection

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/test/race"
)

// received is a Sink that keeps the packets, unless discard is set.
type received struct {
	packets []rtp.Packet
	flushes int
	discard bool
}

func (r *received) RTP(_ uint32, packet []byte, _ *transport.PacketInfo) {
	if r.discard {
		return
	}
	var p rtp.Packet
	if err := p.Unmarshal(bytes.Clone(packet)); err != nil {
		panic(err)
	}
	r.packets = append(r.packets, p)
}

func (r *received) Flush() { r.flushes++ }

// allotment returns an allotment of some MB.
func allotment() *packetlog.Allotment {
	return packetlog.NewPieces(packetlog.NewBudget(64 << 20)).NewAllotment()
}

// TestChunkedFrame injects a frame in two chunks. The packets carry the frame, and the memory of the chunks is free.
func TestChunkedFrame(t *testing.T) {
	sink, memory := &received{}, allotment()
	j := New(sink, memory, 1<<20)
	data := bytes.Repeat([]byte{1, 2, 3, 4, 5}, payload.ChunkSize/4)
	for n := range payload.Chunks(len(data)) {
		part := data[n*payload.ChunkSize : min((n+1)*payload.ChunkSize, len(data))]
		err := j.Chunk(&payload.Chunk{Quality: 1, Frame: 7, Length: uint32(len(data)), Index: uint16(n),
			Timestamp: 9000, Data: part}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []byte
	for n, p := range sink.packets {
		var d payload.Descriptor
		body, err := d.Unmarshal(p.Payload)
		if err != nil || d.Frame != 7 || d.Quality != 1 || int(d.Index) != n || p.Timestamp != 9000 ||
			p.SSRC != j.SSRC() || p.Marker != (n == len(sink.packets)-1) ||
			p.SequenceNumber != sink.packets[0].SequenceNumber+uint16(n) {
			t.Fatalf("packet %d is %+v with %+v: %v", n, p.Header, d, err)
		}
		if d.Index < d.Source {
			got = append(got, body...)
		}
	}
	if !bytes.Equal(got, data) || sink.flushes != 1 || memory.Used() != 0 {
		t.Errorf("%d bytes came in %d packets, expected %d, with %d flushes, and %d bytes are held", len(got),
			len(sink.packets), len(data), sink.flushes, memory.Used())
	}
}

// TestIncompleteFrames checks that incomplete frames are discarded with the second Sweep after their last chunk, and at
// the End, after which nothing is held.
func TestIncompleteFrames(t *testing.T) {
	sink, memory := &received{}, allotment()
	j := New(sink, memory, 1<<20)
	begin := func(frame uint32) {
		t.Helper()
		if err := j.Chunk(&payload.Chunk{Frame: frame, Length: 2 * payload.ChunkSize,
			Data: make([]byte, payload.ChunkSize)}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	begin(1)
	if j.Sweep(); memory.Used() == 0 {
		t.Error("the frame was discarded although its chunk has just arrived")
	}
	if j.Sweep(); memory.Used() != 0 {
		t.Errorf("%d bytes are held of a frame that does not continue", memory.Used())
	}
	begin(2)
	if j.End(); memory.Used() != 0 {
		t.Errorf("%d bytes are held after the end", memory.Used())
	}
	if begin(3); memory.Used() != 0 || len(sink.packets) != 0 {
		t.Errorf("an injector that has ended holds %d bytes, and has sent %d packets", memory.Used(), len(sink.packets))
	}
}

// TestFrameLimits injects a frame with more packets than a slot can number.
func TestFrameLimits(t *testing.T) {
	j := New(&received{discard: true}, allotment(), 1<<20)
	err := j.Frame(payload.Descriptor{Frame: 1}, make([]byte, 40<<20), 0, time.Now())
	if !errors.Is(err, payload.ErrFrame) {
		t.Errorf("a frame of 40 MB: %v", err)
	}
}

// TestFrameAllocations injects frames without allocations.
func TestFrameAllocations(t *testing.T) {
	race.SkipSequential(t)
	j := New(&received{discard: true}, allotment(), 1<<20)
	data, now, number := make([]byte, 10_000), time.Now(), uint32(0)
	if n := testing.AllocsPerRun(100, func() {
		number++
		if err := j.Frame(payload.Descriptor{Frame: number}, data, 3000*number, now); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("a frame takes %v allocations, expected none", n)
	}
}
