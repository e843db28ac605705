package frames

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrNotChunked is returned for a packet that cannot be sent in chunks.
var ErrNotChunked = errors.New("packet cannot be sent in chunks")

// The payload types for switchers and retransmissions. They are never sent to a peer.
const (
	chunkPayloadType  = 96
	chunkRepeatedType = 97
)

// keptBuilding is the number of incomplete frames per slot: the current frame, and the frame before if one of its
// packets is still missing.
const keptBuilding = 2

var _ egress.FrameOutlet = (*Outlet)(nil)

// Outlet sends the frames of a slot over a data channel with the slot's label. An Outlet accepts payload v1 only:
// frames of other codecs go to decoders, which need media lines.
type Outlet struct {
	sender *Sender
	stream chunkStream
	slot   *egress.Slot
	ssrc   uint32
	// repeats is the SSRC of packets that probes repeat.
	repeats uint32
	// building are the incomplete frames, oldest first. waiting is a complete frame, nil if there is none.
	building []*chunkFrame
	waiting  *chunkFrame
	// newest is the timestamp of the newest frame sent, valid if sent is set.
	newest uint32
	sent   bool
	// ended is set when the receiver is closed.
	ended bool
}

// NewOutlet returns the outlet that sends the frames of one slot on a channel.
func (s *Sender) NewOutlet(c Channel) *Outlet {
	o := &Outlet{sender: s, stream: chunkStream{channel: c}, ssrc: 2 + rand.Uint32N(1<<31-2)}
	o.repeats = o.ssrc | 1<<31
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outlets = append(s.outlets, o)
	return o
}

// Attach implements egress.FrameOutlet.
func (o *Outlet) Attach(s *egress.Slot) {
	o.sender.mu.Lock()
	defer o.sender.mu.Unlock()
	o.slot = s
}

// End implements egress.FrameOutlet.
func (o *Outlet) End() {
	o.sender.mu.Lock()
	defer o.sender.mu.Unlock()
	o.ended = true
	for _, f := range o.building {
		f.release(o.memory())
	}
	if o.waiting != nil {
		o.waiting.release(o.memory())
	}
	o.building, o.waiting = nil, nil
}

// memory returns the allotment for the memory of frames.
func (o *Outlet) memory() *packetlog.Allotment { return o.sender.receiver.Memory() }

// SSRC implements egress.Outlet. The SSRC identifies the slot in reports.
func (o *Outlet) SSRC() uint32 { return o.ssrc }

// RetransmissionSSRC implements egress.Outlet.
func (o *Outlet) RetransmissionSSRC() uint32 { return o.repeats }

// PayloadType implements egress.Outlet.
func (o *Outlet) PayloadType(mime string) (media, retransmission uint8, ok bool) {
	return chunkPayloadType, chunkRepeatedType, strings.EqualFold(mime, volumetric.MIMEVolumetric)
}

// Queue implements egress.Outlet. Errors for packets other than fragments of payload v1 wrap ErrNotChunked.
func (o *Outlet) Queue(h *rtp.Header, body []byte) error {
	s := o.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.ended {
		return nil
	}
	if h.SSRC == o.repeats {
		s.pad(h.SSRC, h.SequenceNumber, body)
		return nil
	}
	var d payload.Descriptor
	data, err := d.Unmarshal(body)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotChunked, err)
	case d.Index >= d.Source || int64(d.Length) > int64(s.limit):
		return fmt.Errorf("%w: fragment %d of %d, frame of %d bytes, expected at most %d", ErrNotChunked, d.Index,
			d.Source, d.Length, s.limit)
	}
	f := o.frame(h.Timestamp, &d)
	if f == nil || f.discarded {
		return nil
	}
	now := s.receiver.EngineTime()
	switch whole, ok := f.take(o.memory(), &d, data, h.SequenceNumber, now); {
	case !ok:
		f.discard(o.memory())
		o.slot.FrameDropped()
	case whole:
		o.completed(f, now)
	}
	return nil
}

// frame returns the incomplete frame of a packet, or begins the frame. frame returns nil if the frame was sent or is
// too old.
func (o *Outlet) frame(timestamp uint32, d *payload.Descriptor) *chunkFrame {
	for i, f := range o.building {
		if f.timestamp != timestamp {
			continue
		}
		if f.descriptor.SameFrame(d) {
			return f
		}
		o.forget(i)
		break
	}
	if o.sent && int32(timestamp-o.newest) <= 0 || o.waiting != nil && int32(timestamp-o.waiting.timestamp) <= 0 {
		return nil
	}
	if len(o.building) == keptBuilding {
		o.forget(0)
	}
	f := newChunkFrame(d, timestamp)
	o.building = append(o.building, f)
	return f
}

// forget discards an incomplete frame.
func (o *Outlet) forget(i int) {
	o.building[i].release(o.memory())
	o.building = append(o.building[:i], o.building[i+1:]...)
}

// completed queues a complete frame and drops the complete frame that waited. Older incomplete frames are too late and
// are discarded.
func (o *Outlet) completed(f *chunkFrame, now time.Time) {
	kept := o.building[:0]
	for _, other := range o.building {
		if int32(other.timestamp-f.timestamp) > 0 {
			kept = append(kept, other)
		} else if other != f {
			other.release(o.memory())
		}
	}
	o.building = kept
	if o.waiting != nil {
		o.waiting.release(o.memory())
		o.slot.FrameDropped()
	}
	o.waiting = f
	o.serve(now)
}

// serve sends the waiting frame if the backlog has room.
func (o *Outlet) serve(now time.Time) {
	s := o.sender
	f := o.waiting
	if f == nil || !s.room() {
		return
	}
	o.waiting, o.newest, o.sent = nil, f.timestamp, true
	chunk := payload.Chunk{
		Prefixed: f.descriptor.Prefixed, Quality: f.descriptor.Quality, Frame: f.descriptor.Frame,
		Length: f.descriptor.Length, Timestamp: f.timestamp,
	}
	part := 0
	for i := range payload.Chunks(int(f.descriptor.Length)) {
		chunk.Index = uint16(i)
		begin := uint64(i) * payload.ChunkSize
		end := min(begin+payload.ChunkSize, uint64(f.descriptor.Length))
		s.message = f.append(chunk.Append(s.message[:0]), begin, end)
		if !s.send(&o.stream, s.message) {
			break
		}
		for ; part < int(f.descriptor.Source); part++ {
			p := f.part(part)
			last := uint64(part)*payload.FragmentSize + uint64(p.size)
			if last > end {
				break
			}
			o.stream.expect(sentPart{end: o.stream.written - (end - last), held: now.Sub(p.came), ssrc: o.ssrc,
				sequence: p.sequence, size: p.size})
		}
	}
	f.release(o.memory())
}
