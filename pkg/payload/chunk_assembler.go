package payload

import (
	"fmt"
	"math/bits"
	"sync"
)

// maxAssemblies is how many frames of one track may be under way at once: chunks of two frames cross where the first one's was lost, and hardly of more.
const maxAssemblies = 4

// ChunkBudget bounds what several assemblers hold together. Its methods are safe for as many goroutines as they belong to.
type ChunkBudget interface {
	// Reserve takes so many bytes of it, and tells whether it had as many.
	Reserve(bytes int) bool
	// Release gives so many back.
	Release(bytes int)
}

// ChunkAssembler puts the frames of one track together from chunks in any order, maxAssemblies at once. It holds what has come of them, whatever they claim to be: no message
// takes more than twice its own size, or a kilobyte, and a frame that is whole as much again while it is in use. It belongs to one goroutine.
type ChunkAssembler struct {
	limit      int
	budget     ChunkBudget
	assemblies [maxAssemblies]assembly
	// newest is the number of the newest frame that was begun, once begun is set.
	newest uint32
	begun  bool
	// whole is the memory of the frame that Take gave last, nil where it needs none; held is what all memory takes, in bytes.
	whole *chunkMemory
	held  int
}

// assembly is a frame under way, or the last one that was in its place.
type assembly struct {
	begun, live bool
	// stale is set by Sweep, until a chunk comes.
	stale bool
	first Chunk // Data is nil
	// parts are the chunks that have come, the latest first, and have has a bit for each of them.
	parts   *chunkMemory
	have    []uint64
	missing int
}

// NewChunkAssembler makes an assembler for frames of up to limit bytes.
func NewChunkAssembler(limit int) *ChunkAssembler { return &ChunkAssembler{limit: limit} }

// Charge has the assembler hold no more than a budget has room for. It is to be called before the first chunk.
func (a *ChunkAssembler) Charge(budget ChunkBudget) { a.budget = budget }

// Held is what the assembler holds, in bytes.
func (a *ChunkAssembler) Held() int { return a.held }

// Take takes a chunk that Unmarshal has checked, and gives the whole frame with its last one, as a chunk with all its data, which is valid until the next Take or Done; that of
// a frame of a single chunk is the chunk's own. Chunks of frames that were given up, and repeated ones, are passed over. Errors wrap ErrChunk where the frame is too long, or
// its chunks contradict one another, and ErrNoRoom where the budget has no room for what has come; then the frame is given up.
func (a *ChunkAssembler) Take(c *Chunk) (frame Chunk, whole bool, err error) {
	a.Done()
	if int64(c.Length) > int64(a.limit) {
		return frame, false, fmt.Errorf("%w: frame of %d bytes, expected at most %d", ErrChunk, c.Length, a.limit)
	}
	s := a.assembly(c)
	if s == nil {
		return frame, false, nil
	}
	if f := &s.first; f.Length != c.Length || f.Quality != c.Quality || f.Prefixed != c.Prefixed || f.Timestamp != c.Timestamp || f.Tile != c.Tile {
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

// Done gives the memory of the last whole frame back.
func (a *ChunkAssembler) Done() {
	if a.whole != nil {
		a.release(a.whole)
		a.whole = nil
	}
}

// Sweep gives up the frames of which nothing has come since the last Sweep. Called once a second, it lets go of what a sender has left unfinished after two.
func (a *ChunkAssembler) Sweep() {
	for i := range a.assemblies {
		s := &a.assemblies[i]
		if s.live && s.stale {
			a.giveUp(s)
		}
		s.stale = true
	}
}

// Clear gives up all frames that are under way. That which Take gave last stays valid.
func (a *ChunkAssembler) Clear() {
	for i := range a.assemblies {
		a.giveUp(&a.assemblies[i])
	}
}

// assembly finds the frame of a chunk, or begins it; nil where it is over, or was given up for newer ones.
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

// begin makes the assembly that of a chunk's frame.
func (s *assembly) begin(c *Chunk) {
	s.begun, s.live, s.first, s.missing = true, true, *c, Chunks(int(c.Length))
	s.first.Index, s.first.Data = 0, nil
	words := (s.missing + 63) / 64
	if cap(s.have) < words {
		s.have = make([]uint64, words)
	}
	s.have = s.have[:words]
	clear(s.have)
}

// note takes note of a chunk, and tells whether it is the first under its number.
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

// hold keeps a chunk until its frame is whole.
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

// gather makes one piece of a frame whose last chunk has come.
func (a *ChunkAssembler) gather(s *assembly, last *Chunk) ([]byte, error) {
	whole := a.reserve(int(last.Length))
	if whole == nil {
		a.giveUp(s)
		return nil, fmt.Errorf("%w: frame %d of %d bytes", ErrNoRoom, last.Frame, last.Length)
	}
	for part := s.parts; part != nil; part = part.next {
		copy(whole.bytes[int(part.index)*ChunkSize:], part.bytes)
	}
	copy(whole.bytes[int(last.Index)*ChunkSize:], last.Data)
	a.giveUp(s)
	a.whole = whole
	return whole.bytes, nil
}

// giveUp lets go of what has come of a frame.
func (a *ChunkAssembler) giveUp(s *assembly) {
	s.live = false
	for part := s.parts; part != nil; {
		next := part.next
		a.release(part)
		part = next
	}
	s.parts = nil
}

// chunkMemory holds a chunk, or a whole frame.
type chunkMemory struct {
	bytes []byte
	index uint16
	next  *chunkMemory
}

// minMemory is the least that is taken at a time. Only the last chunk of a frame can be shorter than ChunkSize.
const minMemory = 1 << 10

// spareMemory is memory that nobody needs: minMemory << n bytes each at n, up to the 4 GiB that Length can say. What the garbage collector finds unused in it, it frees.
var spareMemory [23]sync.Pool

// reserve takes memory for so many bytes, nil where the budget has no room.
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

// release gives memory back.
func (a *ChunkAssembler) release(m *chunkMemory) {
	size := cap(m.bytes)
	a.held -= size
	if a.budget != nil {
		a.budget.Release(size)
	}
	m.next = nil
	spareMemory[bits.Len(uint(size/minMemory))-1].Put(m)
}
