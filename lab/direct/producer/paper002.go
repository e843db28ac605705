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

// FrameBytes is what a frame of payload v1 takes beside what the codec made.
const FrameBytes = payload.PrefixSize

const (
	// bufferedFrames is the size of paper 002's buffer between the two threads of its producer: a third of a second.
	bufferedFrames = 10
	// chunkBytes is what a chunk takes on the wire beside its data: its header, 8 of UDP and 20 of IPv4.
	chunkBytes = chunks.HeaderSize + 8 + 20
)

// Paper002 is the outlet of paper 002: chunks one after the other, at once or with a gap between, out of a buffer of
// ten frames whose oldest is dropped.
type Paper002 struct {
	way    chunks.Outlet
	ledger Ledger
	gap    time.Duration
	frames *queue.Queue[*buffered]
	free   chan *buffered
}

// buffered is a frame in the buffer, in memory of its own.
type buffered struct {
	sent stages.Sent
	data []byte
}

// NewPaper002 makes an outlet with a gap between chunks, 0 for none.
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

// Estimate implements Outlet: nobody estimates.
func (o *Paper002) Estimate() volumetric.Bitrate { return 0 }

// Want implements Outlet.
func (o *Paper002) Want(volumetric.Bitrate) {}

// Waiting tells whether frames have not left yet.
func (o *Paper002) Waiting() bool { return len(o.free) < cap(o.free) }

// Run sends until the context ends. Then a chunk without data begins a frame after the last one, so that the receiver
// closes that.
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
	// The last chunk may have arrived before this goroutine goes on.
	b.sent.FirstSent, b.sent.LastSent = stages.At(first), stages.At(last)
	b.sent.Packets, b.sent.Wire = count, len(b.data)+count*chunkBytes
}
