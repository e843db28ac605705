package producer

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab/baseline/chunks"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/queue"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FrameBytes is the overhead of a frame of payload v1 beyond the data of the codec.
const FrameBytes = payload.PrefixSize

const (
	// bufferedFrames is the size of the buffer between the two threads of paper 002's producer: a third of a second.
	bufferedFrames = 10
	// chunkBytes is the overhead of a chunk on the wire: its header, 8 bytes of UDP and 20 of IPv4.
	chunkBytes = chunks.HeaderSize + 8 + 20
)

// Paper002 is the outlet of paper 002: it sends chunks in order, at once or with a gap between them, from a buffer of
// ten frames. If the buffer is full, the oldest frame is dropped.
type Paper002 struct {
	way    chunks.Outlet
	ledger Ledger
	gap    time.Duration
	frames *queue.Queue[*buffered]
	free   chan *buffered
}

// buffered is a frame in the buffer, with its own memory.
type buffered struct {
	sent stages.Sent
	data []byte
}

// NewPaper002 returns an outlet with a gap between chunks, 0 for none.
func NewPaper002(gap time.Duration, way chunks.Outlet, ledger Ledger) *Paper002 {
	o := &Paper002{way: way, ledger: ledger, gap: gap, frames: queue.New[*buffered](bufferedFrames),
		free: make(chan *buffered, bufferedFrames+2)}
	for range cap(o.free) {
		o.free <- &buffered{}
	}
	return o
}

// Send implements Outlet.
func (o *Paper002) Send(f *Frame) error {
	b := <-o.free
	b.sent, b.data = f.Sent, append(b.data[:0], f.Data[payload.PrefixSize:]...)
	if oldest, dropped := o.frames.Push(b); dropped {
		oldest.sent.Dropped = true
		o.ledger.Sent(&oldest.sent)
		o.free <- oldest
	}
	return nil
}

// Estimate implements Outlet. The bandwidth is not estimated.
func (o *Paper002) Estimate() volumetric.Bitrate { return 0 }

// Want implements Outlet.
func (o *Paper002) Want(volumetric.Bitrate) {}

// Waiting reports whether frames wait to be sent.
func (o *Paper002) Waiting() bool { return len(o.free) < cap(o.free) }

// Run sends until the context ends. Then it sends an empty chunk of a following frame, so that the receiver closes the
// last frame.
func (o *Paper002) Run(ctx context.Context) {
	packet := make([]byte, 0, chunks.MaxPacketSize)
	last := uint32(0)
	for {
		b, ok := o.frames.Pop(ctx)
		if !ok {
			chunks.Finish(o.way, packet, last)
			return
		}
		o.transmit(b, packet)
		last = b.sent.Frame
		o.ledger.Sent(&b.sent)
		o.free <- b
	}
}

// transmit sends the chunks of a frame.
func (o *Paper002) transmit(b *buffered, packet []byte) {
	first, last, count := chunks.Transmit(o.way, packet, b.sent.Frame, b.data, o.gap)
	// The last chunk may arrive before this goroutine continues.
	b.sent.FirstSent, b.sent.LastSent = stages.At(first), stages.At(last)
	b.sent.Packets, b.sent.Wire = count, len(b.data)+count*chunkBytes
}
