package payload

import (
	"fmt"
	"math/bits"
	"sync"
)

// maxAssemblies is the number of incomplete frames that an assembler keeps for one track. After a
// loss, chunks of two frames interleave; chunks of more than two hardly ever do.
const maxAssemblies = 8

// ChunkBudget bounds the memory of several assemblers together. The methods must be safe for concurrent use by the
// goroutines of all these assemblers.
type ChunkBudget interface {
	// Reserve reserves memory in bytes and reports whether the budget had room.
	Reserve(bytes int) bool
	// Release returns reserved memory, in bytes.
	Release(bytes int)
}

// ChunkAssembler assembles the frames of one track from chunks in any order, up to maxAssemblies
// frames at once. Memory is allocated for received data only, whatever length the chunks claim: a
// message occupies at most twice its own size, or 1 kB if that is more. A complete frame occupies
// the same amount again until Done. A ChunkAssembler belongs to one goroutine.
type ChunkAssembler struct {
	limit      int
	budget     ChunkBudget
	assemblies [maxAssemblies]assembly
	// newest is the number of the newest frame seen, valid if begun is set.
	newest uint32
	begun  bool
	// whole is the memory of the frame that Take returned last, nil if that frame needs none. held
	// is the size of all memory held, in bytes.
	whole *chunkMemory
	held  int
}

// assembly is an incomplete frame, or the remains of the last frame in the same place.
type assembly struct {
	begun, live bool
	// stale is set by Sweep and cleared by the next chunk.
	stale bool
	first Chunk // without Data
	// parts lists the chunks received, newest first. have has one bit for each chunk received.
	parts   *chunkMemory
	have    []uint64
	missing int
}

// NewChunkAssembler returns an assembler for frames of up to limit bytes.
func NewChunkAssembler(limit int) *ChunkAssembler { return &ChunkAssembler{limit: limit} }

// Charge makes the assembler reserve its memory from budget. Charge must be called before the first
// chunk.
func (a *ChunkAssembler) Charge(budget ChunkBudget) { a.budget = budget }

// Held returns the memory held by the assembler, in bytes.
func (a *ChunkAssembler) Held() int { return a.held }

// Take adds a chunk that Unmarshal has checked. When the chunk completes its frame, Take returns
// the frame as one chunk with all its data and whole is true. The data stays valid until the next
// Take or Done; the data of a frame with a single chunk is the data of that chunk. Take ignores
// repeated chunks and chunks of frames that were given up. An error wraps ErrChunk if the frame is
// longer than the limit or its chunks contradict each other, and ErrNoRoom if the budget has no
// room. After ErrNoRoom the frame is given up.
func (a *ChunkAssembler) Take(c *Chunk) (frame Chunk, whole bool, err error) {
	a.Done()
	if int64(c.Length) > int64(a.limit) {
		return frame, false, fmt.Errorf("%w: frame of %d bytes, expected at most %d", ErrChunk, c.Length, a.limit)
	}
	s := a.assembly(c)
	if s == nil {
		return frame, false, nil
	}
	if f := &s.first; f.Length != c.Length || f.Quality != c.Quality || f.Prefixed != c.Prefixed ||
		f.Timestamp != c.Timestamp || f.Tile != c.Tile || f.Numbered != c.Numbered {
		return frame, false, fmt.Errorf("%w: chunk %d of frame %d contradicts those before", ErrChunk, c.Index, c.Frame)
	}
	if !s.note(c.Index) {
		return frame, false, nil
	}
	if s.missing > 0 {
		return frame, false, a.hold(s, c)
	}
	s.live = false
	frame = s.first
	if s.parts == nil {
		frame.Data = c.Data
		return frame, true, nil
	}
	if frame.Data, err = a.gather(s, c); err != nil {
		return Chunk{}, false, err
	}
	return frame, true, nil
}

// Done releases the memory of the last complete frame.
func (a *ChunkAssembler) Done() {
	if a.whole != nil {
		a.release(a.whole)
		a.whole = nil
	}
}

// Sweep gives up the frames that received no chunk since the previous Sweep. If Sweep is called
// once per second, an unfinished frame is released after two seconds at most.
func (a *ChunkAssembler) Sweep() {
	for i := range a.assemblies {
		s := &a.assemblies[i]
		if s.live && s.stale {
			a.giveUp(s)
		}
		s.stale = true
	}
}

// Clear gives up all incomplete frames. The frame that Take returned last stays valid.
func (a *ChunkAssembler) Clear() {
	for i := range a.assemblies {
		a.giveUp(&a.assemblies[i])
	}
}

// assembly returns the assembly of the chunk's frame and starts a new one if necessary. assembly returns nil if the
// frame is complete, was given up, or is too old.
func (a *ChunkAssembler) assembly(c *Chunk) *assembly {
	s := &a.assemblies[c.Frame%maxAssemblies]
	if s.begun && s.first.Frame == c.Frame {
		if !s.live {
			return nil
		}
		return s
	}
	if a.begun && int32(c.Frame-a.newest) <= -maxAssemblies || s.live && int32(c.Frame-s.first.Frame) < 0 {
		return nil
	}
	a.giveUp(s)
	s.begin(c)
	if !a.begun || int32(c.Frame-a.newest) > 0 {
		a.begun, a.newest = true, c.Frame
	}
	return s
}

// begin starts the frame of a chunk.
func (s *assembly) begin(c *Chunk) {
	s.begun, s.live, s.first, s.missing = true, true, *c, c.Count()
	s.first.Index, s.first.Data = 0, nil
	words := (s.missing + 63) / 64
	if cap(s.have) < words {
		s.have = make([]uint64, words)
	}
	s.have = s.have[:words]
	clear(s.have)
}

// note marks a chunk as received and reports whether the chunk is new.
func (s *assembly) note(index uint16) bool {
	word, bit := &s.have[index/64], uint64(1)<<(index%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	s.missing--
	s.stale = false
	return true
}

// hold copies a chunk until its frame is complete.
func (a *ChunkAssembler) hold(s *assembly, c *Chunk) error {
	part := a.reserve(len(c.Data))
	if part == nil {
		a.giveUp(s)
		return fmt.Errorf("%w: frame %d of %d bytes", ErrNoRoom, c.Frame, c.Length)
	}
	copy(part.bytes, c.Data)
	part.index, part.next = c.Index, s.parts
	s.parts = part
	return nil
}

// gather joins the chunks of a frame whose last missing chunk has arrived.
func (a *ChunkAssembler) gather(s *assembly, last *Chunk) ([]byte, error) {
	whole := a.reserve(int(last.Length))
	if whole == nil {
		a.giveUp(s)
		return nil, fmt.Errorf("%w: frame %d of %d bytes", ErrNoRoom, last.Frame, last.Length)
	}
	for part := s.parts; part != nil; part = part.next {
		copy(whole.bytes[int(part.index)*last.Size():], part.bytes)
	}
	copy(whole.bytes[int(last.Index)*last.Size():], last.Data)
	a.giveUp(s)
	a.whole = whole
	return whole.bytes, nil
}

// giveUp releases the chunks received for a frame.
func (a *ChunkAssembler) giveUp(s *assembly) {
	s.live = false
	for part := s.parts; part != nil; {
		next := part.next
		a.release(part)
		part = next
	}
	s.parts = nil
}

// chunkMemory holds the data of one chunk or of one complete frame.
type chunkMemory struct {
	bytes []byte
	index uint16
	next  *chunkMemory
}

// minMemory is the smallest allocation, in bytes. Only the last chunk of a frame can be shorter.
const minMemory = 1 << 10

// spareMemory holds unused memory: the pool at index n has buffers of minMemory << n bytes, up to
// the 4 GiB that Length can express. The garbage collector may free unused buffers.
var spareMemory [23]sync.Pool

// reserve returns memory for a number of bytes, or nil if the budget has no room.
func (a *ChunkAssembler) reserve(bytes int) *chunkMemory {
	power := bits.Len(uint(max(bytes-1, 0)) / minMemory)
	size := minMemory << power
	if a.budget != nil && !a.budget.Reserve(size) {
		return nil
	}
	a.held += size
	m, ok := spareMemory[power].Get().(*chunkMemory)
	if !ok {
		m = &chunkMemory{bytes: make([]byte, size)}
	}
	m.bytes = m.bytes[:bytes]
	return m
}

// release returns memory to the budget and to the pool.
func (a *ChunkAssembler) release(m *chunkMemory) {
	size := cap(m.bytes)
	a.held -= size
	if a.budget != nil {
		a.budget.Release(size)
	}
	m.next = nil
	spareMemory[bits.Len(uint(size/minMemory))-1].Put(m)
}
