package frames

import (
	"runtime"
	"testing"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/test/race"
)

// claim queues the last fragment, of one byte, of a frame that claims 16 MB.
func claim(t *testing.T, o *Outlet, frame uint32) {
	t.Helper()
	const source = 14_600
	d := payload.Descriptor{Source: source, Index: source - 1, Frame: frame,
		Length: (source-1)*payload.FragmentSize + 1}
	body := make([]byte, payload.DescriptorSize+d.DataSize())
	if _, err := d.MarshalTo(body); err != nil {
		t.Fatal(err)
	}
	if err := o.Queue(&rtp.Header{SSRC: o.SSRC(), SequenceNumber: uint16(frame), Timestamp: 3000 * frame},
		body); err != nil {
		t.Fatal(err)
	}
}

// TestClaimedFramesTakeLittle sends packets that each begin another frame that claims to be long.
func TestClaimedFramesTakeLittle(t *testing.T) {
	c := newChunked(t)
	c.sender.limit = 16 << 20
	_, o, _ := c.line()
	const packets = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for frame := range uint32(packets) {
		claim(t, o, frame+1)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / packets; each > 16<<10 {
		t.Errorf("a packet takes %d bytes", each)
	}
	if held := c.receiver.Memory().Used(); held > keptBuilding*int64(pageBytes+partBytes) {
		t.Errorf("%d bytes are held of %d frames", held, keptBuilding)
	}
}

// TestFramesInChunksWithoutAllocations reassembles frames in reused memory.
func TestFramesInChunksWithoutAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("skipped: the race detector makes pools allocate")
	}
	c := newChunked(t)
	_, o, _ := c.line()
	// Nothing is sent, so that nothing is copied.
	c.receiver.backlog = -1
	const length = 100 * payload.FragmentSize
	d := payload.Descriptor{Source: 100, Length: length}
	body := make([]byte, payload.DescriptorSize+payload.FragmentSize)
	h := rtp.Header{SSRC: o.SSRC()}
	var taken []egress.Event
	allocations := testing.AllocsPerRun(200, func() {
		d.Frame++
		h.Timestamp += 3000
		for d.Index = range d.Source {
			h.SequenceNumber++
			if _, err := d.MarshalTo(body); err != nil {
				t.Fatal(err)
			}
			if err := o.Queue(&h, body); err != nil {
				t.Fatal(err)
			}
		}
		taken = c.receiver.TakeEvents(taken[:0])
	})
	// A garbage collection empties the pools once in a while.
	if allocations >= 5 {
		t.Errorf("%v allocations for a frame of 100 packets", allocations)
	}
}

// TestFramesInChunksKeepToABudget uses a receiver with many slots that acknowledges nothing. Its memory stays within
// the limit of one receiver, frames without memory are dropped as a whole, and another receiver still has memory. When
// the receiver resumes, so do its frames. Closing releases everything.
func TestFramesInChunksKeepToABudget(t *testing.T) {
	const limit, length = 4 << 20, 100 * payload.FragmentSize
	// Chunked frames may use a quarter of the cache.
	c := newChunkedWithin(t, 4*limit)
	c.receiver.backlog = -1
	var outlets []*Outlet
	var channels []*playedChannel
	for range 60 {
		_, o, channel := c.line()
		outlets, channels = append(outlets, o), append(channels, channel)
	}
	for frame := uint32(1); frame <= 3; frame++ {
		for _, o := range outlets {
			whole(o, t, frame, length)
			if held := c.receiver.Memory().Used(); held > limit/2 {
				t.Fatalf("%d bytes are held for one receiver, expected at most %d", held, limit/2)
			}
		}
	}
	dropped := 0
	for _, e := range c.receiver.TakeEvents(nil) {
		dropped += e.DroppedFrames
	}
	if held := c.receiver.Memory().Used(); held < limit/3 || dropped < 60 {
		t.Errorf("%d bytes are held, %d frames were dropped", held, dropped)
	}
	other := &limited{c.writers.NewReceiver(fakePeer{}, 0), 1 << 20}
	channel := &playedChannel{}
	o := NewSender(other, 1<<20, &playedChannel{}).NewOutlet(channel)
	whole(o, t, 1, length)
	if len(channel.frames(t)) != 1 {
		t.Error("there is no room for another receiver")
	}
	c.receiver.backlog = 1 << 30
	c.sender.Acknowledged(c.now)
	for _, o := range outlets {
		whole(o, t, 4, length)
	}
	for n, channel := range channels {
		if frames := channel.frames(t); len(frames) == 0 || frames[len(frames)-1].Frame != 4 {
			t.Errorf("channel %d: %d frames, expected the newest", n, len(frames))
		}
	}
	fragment(outlets[0], t, 5, 15_000, length, 0)
	c.receiver.backlog = -1
	whole(outlets[1], t, 5, length)
	if c.pieces.Used() == 0 {
		t.Error("nothing is held")
	}
	c.receiver.Close()
	whole(outlets[2], t, 6, length)
	if used := c.pieces.Used(); used != 0 || c.budget.Used() != 0 {
		t.Errorf("%d bytes are held after the receiver has left", used)
	}
}
