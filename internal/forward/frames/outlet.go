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

// ErrNotChunked says that a packet cannot be sent in chunks.
var ErrNotChunked = errors.New("nothing that goes in chunks")

// The payload types that switchers and repetitions are told. No peer sees them.
const (
	chunkPayloadType  = 96
	chunkRepeatedType = 97
)

// keptBuilding is how many frames of a slot may be under way to being complete: one, and the one before, of which its
// publisher owes a packet.
const keptBuilding = 2

var _ egress.FrameOutlet = (*Outlet)(nil)

// Outlet sends what a slot carries over a data channel, under the slot's label. It takes payload v1 only: frames of
// other codecs are for decoders, which take media lines.
type Outlet struct {
	sender *Sender
	stream chunkStream
	slot   *egress.Slot
	ssrc   uint32
	// repeats is the SSRC that probes repeat packets under.
	repeats uint32
	// building are frames that are not complete, the oldest first; waiting is complete, nil where none is.
	building []*chunkFrame
	waiting  *chunkFrame
	// newest is the timestamp of the newest frame that was sent, once sent is set.
	newest uint32
	sent   bool
	// ended says that the receiver is closed.
	ended bool
}

// NewOutlet adds a channel that frames of one slot are sent on.
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

// memory is what frames take their room of.
func (o *Outlet) memory() *packetlog.Allotment { return o.sender.receiver.Memory() }

// SSRC implements egress.Outlet. It is what reports name the slot by.
func (o *Outlet) SSRC() uint32 { return o.ssrc }

// RetransmissionSSRC implements egress.Outlet.
func (o *Outlet) RetransmissionSSRC() uint32 { return o.repeats }

// PayloadType implements egress.Outlet.
func (o *Outlet) PayloadType(mime string) (media, retransmission uint8, ok bool) {
	return chunkPayloadType, chunkRepeatedType, strings.EqualFold(mime, volumetric.MIMEVolumetric)
}

// Queue implements egress.Outlet. Errors for packets that are no fragments of payload v1 wrap ErrNotChunked.
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
	if f == nil || f.spoilt {
		return nil
	}
	now := s.receiver.EngineTime()
	switch whole, ok := f.take(o.memory(), &d, data, h.SequenceNumber, now); {
	case !ok:
		f.spoil(o.memory())
		o.slot.FrameDropped()
	case whole:
		o.completed(f, now)
	}
	return nil
}

// frame finds a frame that is being put together, or begins it; nil where it is over.
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

// forget gives up a frame that is being put together.
func (o *Outlet) forget(i int) {
	o.building[i].release(o.memory())
	o.building = append(o.building[:i], o.building[i+1:]...)
}

// completed has a frame be sent next, in place of one that waits. Older ones that are not complete come too late.
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

// serve sends the frame that waits, if there is room.
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
