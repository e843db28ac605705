package rtc

import (
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
)

// openFrames is the number of frames of a track that are assembled at the same time. A retransmission arrives a round
// trip and Pion's 100 ms between requests later: at 30 frames per second four or five frames.
const openFrames = 8

// Assembler assembles the frames of one track. An Assembler is pure. Its memory is bounded by openFrames frames.
type Assembler struct {
	open []*partial
	// closed is the highest number of a frame that was completed or given up to make room, valid once begun.
	begun  bool
	closed uint32
	// Incomplete counts frames that were given up. Late counts payloads of frames that were closed.
	Incomplete, Late int64
}

// partial is an incomplete frame.
type partial struct {
	number      uint32
	data        []byte
	seen        []uint64
	missing     int
	first, last time.Time
}

// Push adds a payload and returns the frame that the payload completes, nil for none. Errors wrap ErrPayload.
func (a *Assembler) Push(payload []byte, now time.Time) (*carriage.Arrival, error) {
	h, chunk, err := Parse(payload)
	if err != nil {
		return nil, err
	}
	f := a.frame(h, now)
	if f == nil {
		a.Late++
		return nil, nil
	}
	index := int(h.Offset / ChunkSize)
	if len(f.data) != int(h.Length) || f.seen[index/64]>>(index%64)&1 == 1 {
		return nil, nil
	}
	f.seen[index/64] |= 1 << (index % 64)
	copy(f.data[h.Offset:], chunk)
	f.last = now
	if f.missing--; f.missing > 0 {
		return nil, nil
	}
	a.finish(f)
	return &carriage.Arrival{Data: f.data, First: f.first, Last: now, Whole: now}, nil
}

// frame returns the frame of a payload, or begins it. The result is nil if the frame was closed before.
func (a *Assembler) frame(h Header, now time.Time) *partial {
	for _, f := range a.open {
		if f.number == h.Frame {
			return f
		}
	}
	// Frames that were overtaken may still complete. A frame may not begin if it is older than every closed frame.
	if a.begun && int32(h.Frame-a.closed) <= 0 {
		return nil
	}
	count := (int(h.Length) + ChunkSize - 1) / ChunkSize
	f := &partial{number: h.Frame, data: make([]byte, h.Length), seen: make([]uint64, (count+63)/64), missing: count,
		first: now}
	if len(a.open) == openFrames {
		oldest := a.open[0]
		for _, other := range a.open {
			if int32(other.number-oldest.number) < 0 {
				oldest = other
			}
		}
		a.Incomplete++
		a.finish(oldest)
	}
	a.open = append(a.open, f)
	return f
}

// finish closes a frame. Older frames can no longer begin.
func (a *Assembler) finish(f *partial) {
	for i, other := range a.open {
		if other == f {
			a.open = append(a.open[:i], a.open[i+1:]...)
			break
		}
	}
	if !a.begun || int32(f.number-a.closed) > 0 {
		a.begun, a.closed = true, f.number
	}
}
