package forward

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrNotChunked says that a packet cannot be sent in chunks.
var ErrNotChunked = errors.New("nothing that goes in chunks")

// The payload types that switchers and repetitions are told; nobody sees them.
const (
	chunkPayloadType  = 96
	chunkRepeatedType = 97
)

// keptBuilding is how many frames of a slot may be under way to being complete: one, and the one before, of which its publisher owes a packet.
const keptBuilding = 2

// ChunkOutlet sends what a slot carries over a data channel, under the slot's label. It takes payload v1 only: frames of other codecs are for decoders, which
// take media lines.
type ChunkOutlet struct {
	sender *ChunkSender
	stream chunkStream
	slot   *Slot
	ssrc   uint32
	// repeats is the SSRC that probes repeat packets under.
	repeats uint32
	// building are frames that are not complete, the oldest first; waiting is complete, nil where none is.
	building []*chunkFrame
	waiting  *chunkFrame
	// newest is the timestamp of the newest frame that was sent, once sent is set.
	newest uint32
	sent   bool
}

// chunkFrame is a frame that is put together from its packets.
type chunkFrame struct {
	descriptor payload.Descriptor
	timestamp  uint32
	parts      []chunkPart
	missing    int
	// whole is when the last of them came.
	whole time.Time
}

// chunkPart is one fragment, with the number of its packet. Its data is nil before it has come.
type chunkPart struct {
	data     *[payload.FragmentSize]byte
	came     time.Time
	size     uint16
	sequence uint16
}

// fragments are the memory of parts that nobody needs. So frames take as much as has come of them, whatever they claim.
var fragments = sync.Pool{New: func() any { return new([payload.FragmentSize]byte) }}

// NewOutlet adds a channel that frames of one slot are sent on.
func (s *ChunkSender) NewOutlet(c Channel) *ChunkOutlet {
	o := &ChunkOutlet{sender: s, stream: chunkStream{channel: c}, ssrc: 2 + rand.Uint32N(1<<31-2)}
	o.repeats = o.ssrc | 1<<31
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outlets = append(s.outlets, o)
	return o
}

// attach tells the outlet whose frames it sends, so that it can say which it has left out.
func (o *ChunkOutlet) attach(s *Slot) {
	o.sender.mu.Lock()
	defer o.sender.mu.Unlock()
	o.slot = s
}

// SSRC implements Outlet. It is what reports name the slot by.
func (o *ChunkOutlet) SSRC() uint32 { return o.ssrc }

// RetransmissionSSRC implements Outlet.
func (o *ChunkOutlet) RetransmissionSSRC() uint32 { return o.repeats }

// PayloadType implements Outlet.
func (o *ChunkOutlet) PayloadType(mime string) (media, retransmission uint8, ok bool) {
	return chunkPayloadType, chunkRepeatedType, strings.EqualFold(mime, volumetric.MIMEVolumetric)
}

// Queue implements Outlet. Errors for packets that are no fragments of payload v1 wrap ErrNotChunked.
func (o *ChunkOutlet) Queue(h *rtp.Header, body []byte) error {
	s := o.sender
	s.mu.Lock()
	defer s.mu.Unlock()
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
		return fmt.Errorf("%w: fragment %d of %d, frame of %d bytes, expected at most %d", ErrNotChunked, d.Index, d.Source, d.Length, s.limit)
	}
	now := s.receiver.writer.engine.clock()
	if f := o.frame(h.Timestamp, &d); f != nil && f.take(&d, data, h.SequenceNumber, now) {
		o.completed(f, now)
	}
	return nil
}

// frame finds a frame that is being put together, or begins it; nil where it is over.
func (o *ChunkOutlet) frame(timestamp uint32, d *payload.Descriptor) *chunkFrame {
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
	f := &chunkFrame{descriptor: *d, timestamp: timestamp, parts: make([]chunkPart, d.Source), missing: int(d.Source)}
	o.building = append(o.building, f)
	return f
}

// forget gives up a frame that is being put together.
func (o *ChunkOutlet) forget(i int) {
	o.building[i].release()
	o.building = append(o.building[:i], o.building[i+1:]...)
}

// completed has a frame be sent next, in place of one that waits. Older ones that are not complete come too late.
func (o *ChunkOutlet) completed(f *chunkFrame, now time.Time) {
	kept := o.building[:0]
	for _, other := range o.building {
		if int32(other.timestamp-f.timestamp) > 0 {
			kept = append(kept, other)
		} else if other != f {
			other.release()
		}
	}
	o.building = kept
	if o.waiting != nil {
		o.waiting.release()
		o.dropped()
	}
	f.whole = now
	o.waiting = f
	o.serve()
}

// dropped tells of a frame that was left out.
func (o *ChunkOutlet) dropped() {
	r := o.sender.receiver
	r.writer.engine.control.add(droppedBudget, 1)
	if o.slot != nil {
		r.events.add(Event{Slot: o.slot, DroppedFrames: 1, Dropped: DroppedBudget})
	}
}

// serve sends the frame that waits, if there is room.
func (o *ChunkOutlet) serve() {
	s := o.sender
	f := o.waiting
	if f == nil || !s.room() {
		return
	}
	o.waiting, o.newest, o.sent = nil, f.timestamp, true
	chunk := payload.Chunk{
		Prefixed: f.descriptor.Prefixed, Quality: f.descriptor.Quality, Frame: f.descriptor.Frame, Length: f.descriptor.Length, Timestamp: f.timestamp,
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
		for ; part < len(f.parts); part++ {
			p := &f.parts[part]
			last := uint64(part)*payload.FragmentSize + uint64(p.size)
			if last > end {
				break
			}
			o.stream.expect(sentPart{end: o.stream.written - (end - last), held: f.whole.Sub(p.came), ssrc: o.ssrc, sequence: p.sequence, size: p.size})
		}
	}
	f.release()
}

// take takes a fragment, and tells whether the frame is complete with it.
func (f *chunkFrame) take(d *payload.Descriptor, data []byte, sequence uint16, now time.Time) bool {
	p := &f.parts[d.Index]
	if p.data != nil {
		return false
	}
	p.data = fragments.Get().(*[payload.FragmentSize]byte)
	p.size, p.sequence, p.came = uint16(copy(p.data[:], data)), sequence, now
	f.missing--
	return f.missing == 0
}

// append appends the bytes from begin to below end of a whole frame.
func (f *chunkFrame) append(dst []byte, begin, end uint64) []byte {
	for begin < end {
		p := &f.parts[begin/payload.FragmentSize]
		within := begin % payload.FragmentSize
		data := p.data[within:min(uint64(p.size), within+end-begin)]
		dst = append(dst, data...)
		begin += uint64(len(data))
	}
	return dst
}

// release gives the frame's memory back.
func (f *chunkFrame) release() {
	for i := range f.parts {
		if data := f.parts[i].data; data != nil {
			fragments.Put(data)
			f.parts[i].data = nil
		}
	}
}
