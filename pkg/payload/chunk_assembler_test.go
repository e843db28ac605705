package payload

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/volsfu/volsfu/test/race"
)

// allowance is a budget of limit bytes.
type allowance struct{ limit, used, most int }

// Reserve implements ChunkBudget.
func (a *allowance) Reserve(n int) bool {
	if a.used+n > a.limit {
		return false
	}
	a.used += n
	a.most = max(a.most, a.used)
	return true
}

// Release implements ChunkBudget.
func (a *allowance) Release(n int) { a.used -= n }

// lastOfLong returns a chunk from a message of one byte that claims to be the last of a frame of
// 16.8 MB.
func lastOfLong(t *testing.T, frame uint32) *Chunk {
	t.Helper()
	sent := Chunk{Frame: frame, Numbered: frame%2 == 1, Data: []byte{1}}
	sent.Index = uint16(16<<20/sent.Size() - 1)
	sent.Length = uint32(sent.Index)*uint32(sent.Size()) + 1
	var c Chunk
	if err := c.Unmarshal(sent.Append(nil)); err != nil {
		t.Fatal(err)
	}
	return &c
}

// take passes chunks to an assembler and expects the given number of complete frames.
func take(t *testing.T, a *ChunkAssembler, frames int, chunks ...Chunk) {
	t.Helper()
	whole := 0
	for i := range chunks {
		_, done, err := a.Take(&chunks[i])
		if err != nil {
			t.Fatal(err)
		}
		if done {
			whole++
		}
	}
	if whole != frames {
		t.Fatalf("%d frames came of %d chunks, expected %d", whole, len(chunks), frames)
	}
}

// TestClaimsTakeNoMemory sends the last byte of huge frames on many tracks.
func TestClaimsTakeNoMemory(t *testing.T) {
	const tracks = 64
	budget := &allowance{limit: 1 << 30}
	chunks := make([]*Chunk, maxAssemblies)
	for n := range chunks {
		chunks[n] = lastOfLong(t, uint32(n))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range tracks {
		a := NewChunkAssembler(16 << 20)
		a.Charge(budget)
		for _, c := range chunks {
			take(t, a, 0, *c)
		}
	}
	runtime.ReadMemStats(&after)
	messages := tracks * maxAssemblies
	if budget.used > messages*minMemory {
		t.Errorf(
			"%d messages of a byte each hold %d bytes, expected at most %d",
			messages,
			budget.used,
			messages*minMemory,
		)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(messages)*4096 {
		t.Errorf("%d messages of a byte each took %d bytes", messages, took)
	}
}

// TestAssembliesKeepToTheBudget starts frames without end. The memory held stays within the budget,
// and all of it is released at the end.
func TestAssembliesKeepToTheBudget(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	budget := &allowance{limit: 1 << 20}
	var assemblers []*ChunkAssembler
	for range 8 {
		a := NewChunkAssembler(4 << 20)
		a.Charge(budget)
		assemblers = append(assemblers, a)
	}
	refused, whole := 0, 0
	data := make([]byte, 10*ChunkSize)
	for step := range 2000 {
		a := assemblers[random.IntN(len(assemblers))]
		chunks := chunksOf(uint32(step/40)+random.Uint32N(maxAssemblies), data[:1+random.IntN(len(data))])
		_, done, err := a.Take(&chunks[random.IntN(len(chunks))])
		switch {
		case errors.Is(err, ErrNoRoom):
			refused++
		case done:
			whole++
		}
		if random.IntN(50) == 0 {
			a.Sweep()
		}
		held := 0
		for _, a := range assemblers {
			held += a.Held()
		}
		if held != budget.used {
			t.Fatalf("%d bytes are held, and %d taken of the budget", held, budget.used)
		}
	}
	if refused == 0 || whole == 0 || budget.most > budget.limit {
		t.Errorf("%d chunks refused, %d frames whole, up to %d bytes of %d", refused, whole, budget.most, budget.limit)
	}
	for _, a := range assemblers {
		a.Clear()
		a.Done()
	}
	if budget.used != 0 {
		t.Errorf("%d bytes are not given back", budget.used)
	}
}

// TestNoRoomForAFrame refuses first the memory of a chunk and then the memory of the complete
// frame. Nothing stays held, and later frames are assembled.
func TestNoRoomForAFrame(t *testing.T) {
	data := noise(rand.New(rand.NewPCG(1, 2)), 3*ChunkSize)
	for _, limit := range []int{1 << 16, 3 << 16} {
		budget := &allowance{limit: limit}
		a := NewChunkAssembler(1 << 20)
		a.Charge(budget)
		refused := 0
		for _, c := range chunksOf(1, data) {
			if _, whole, err := a.Take(&c); errors.Is(err, ErrNoRoom) {
				refused++
			} else if err != nil || whole {
				t.Fatalf("a budget of %d: whole %t, error %v", limit, whole, err)
			}
		}
		if refused != 1 || budget.used != 0 {
			t.Errorf(
				"a budget of %d: refused %d times, %d bytes are held, expected once and nothing",
				limit,
				refused,
				budget.used,
			)
		}
		budget.limit = 1 << 20
		take(t, a, 1, chunksOf(2, data)...)
	}
}

// TestSweep expects that Sweep gives up frames without a chunk for one second, and no frame that
// still receives chunks, however slowly.
func TestSweep(t *testing.T) {
	a := NewChunkAssembler(1 << 20)
	left, slow := chunksOf(1, make([]byte, 3*ChunkSize)), chunksOf(2, make([]byte, 3*ChunkSize))
	take(t, a, 0, left[0], slow[0])
	a.Sweep()
	take(t, a, 0, slow[1])
	if a.Held() != 3<<16 {
		t.Errorf("%d bytes are held, expected three chunks", a.Held())
	}
	a.Sweep()
	if a.Held() != 2<<16 {
		t.Errorf("%d bytes are held after a second, expected two chunks of the frame that goes on", a.Held())
	}
	take(t, a, 0, left[1], left[2])
	take(t, a, 1, slow[2])
	a.Sweep()
	a.Sweep()
	a.Done()
	if a.Held() != 0 {
		t.Errorf("%d bytes are held in the end", a.Held())
	}
}

// TestACompleteFrameStaysValidAfterClear expects that the frame returned by Take stays valid after Clear.
func TestACompleteFrameStaysValidAfterClear(t *testing.T) {
	a := NewChunkAssembler(1 << 20)
	data := noise(rand.New(rand.NewPCG(5, 6)), 2*ChunkSize)
	chunks := chunksOf(1, data)
	take(t, a, 0, chunks[0])
	frame, whole, err := a.Take(&chunks[1])
	a.Clear()
	a.Sweep()
	if err != nil || !whole || !bytes.Equal(frame.Data, data) || a.Held() != 1<<17 {
		t.Errorf("%d bytes, error %v, %d bytes held", len(frame.Data), err, a.Held())
	}
}

// TestChunksWithoutAllocations expects that frames are assembled in the memory of earlier frames.
func TestChunksWithoutAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("skipped: the race detector makes pools allocate")
	}
	a := NewChunkAssembler(1 << 20)
	a.Charge(&allowance{limit: 1 << 20})
	chunks := [][]Chunk{
		chunksOf(0, make([]byte, 10_000)),
		chunksOf(0, make([]byte, 2*ChunkSize+100)),
		chunksOf(0, make([]byte, 5*ChunkSize)),
	}
	number := uint32(0)
	allocations := testing.AllocsPerRun(200, func() {
		for _, frame := range chunks {
			number++
			for i := range frame {
				frame[i].Frame, frame[i].Timestamp = number, 3000*number
			}
			take(t, a, 1, frame...)
		}
	})
	// A garbage collection may empty the pools.
	if allocations >= 1 {
		t.Errorf("%v allocations for three frames", allocations)
	}
}
