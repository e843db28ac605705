package payload

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// chunksOf cuts a frame into chunks.
func chunksOf(frame uint32, data []byte) []Chunk {
	var chunks []Chunk
	for i := range Chunks(len(data)) {
		part := data[i*ChunkSize : min((i+1)*ChunkSize, len(data))]
		chunks = append(
			chunks,
			Chunk{
				Quality:   1,
				Tile:      3,
				Frame:     frame,
				Length:    uint32(len(data)),
				Index:     uint16(i),
				Timestamp: frame * 3000,
				Data:      part,
			},
		)
	}
	return chunks
}

func noise(random *rand.Rand, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// TestChunks sends the chunks of frames of many sizes in any order, some of them twice, and leaves
// some frames incomplete.
func TestChunks(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	a := NewChunkAssembler(1 << 20)
	for frame := uint32(0xfffffff0); frame != 40; frame++ {
		data := noise(random, []int{0, 1, ChunkSize, ChunkSize + 1, 5*ChunkSize - 3}[random.IntN(5)])
		chunks := chunksOf(frame, data)
		random.Shuffle(len(chunks), func(i, j int) { chunks[i], chunks[j] = chunks[j], chunks[i] })
		dropped := len(chunks) > 1 && random.IntN(4) == 0
		whole := 0
		for i, c := range chunks {
			if dropped && i == 0 {
				continue
			}
			var read Chunk
			if err := read.Unmarshal(c.Append(nil)); err != nil {
				t.Fatal(err)
			}
			for range 1 + random.IntN(2) {
				got, done, err := a.Take(&read)
				if err != nil {
					t.Fatal(err)
				}
				if !done {
					continue
				}
				whole++
				if !bytes.Equal(got.Data, data) || got.Frame != frame || got.Tile != 3 || got.Quality != 1 ||
					got.Timestamp != frame*3000 {
					t.Fatalf("frame %d came as %d bytes of frame %d", frame, len(got.Data), got.Frame)
				}
			}
		}
		if want := 1; (dropped && whole != 0) || (!dropped && whole != want) {
			t.Errorf("frame %d of %d bytes came %d times, dropped %t", frame, len(data), whole, dropped)
		}
	}
}

// TestChunksOfCrossingFrames interleaves the chunks of two frames and adds a chunk of a much older
// frame.
func TestChunksOfCrossingFrames(t *testing.T) {
	a := NewChunkAssembler(1 << 20)
	first, second := chunksOf(10, make([]byte, 2*ChunkSize)), chunksOf(11, make([]byte, 2*ChunkSize))
	order := []*Chunk{&first[0], &second[0], &second[1], &first[1]}
	var got []uint32
	for _, c := range order {
		if frame, whole, err := a.Take(c); err != nil {
			t.Fatal(err)
		} else if whole {
			got = append(got, frame.Frame)
		}
	}
	old := chunksOf(5, []byte{1})
	if _, whole, err := a.Take(&old[0]); whole || err != nil {
		t.Errorf("a frame from before was taken: %t, %v", whole, err)
	}
	if len(got) != 2 || got[0] != 11 || got[1] != 10 {
		t.Errorf("frames %v came, expected 11 and 10", got)
	}
}

func TestChunksThatAreRefused(t *testing.T) {
	good := chunksOf(1, make([]byte, 2*ChunkSize))
	for name, spoil := range map[string]func([]byte) []byte{
		"short":            func(m []byte) []byte { return m[:ChunkHeaderSize-1] },
		"another version":  func(m []byte) []byte { m[0] = 2; return m },
		"beyond the frame": func(m []byte) []byte { m[7] = 2; return m },
		"cut off":          func(m []byte) []byte { return m[:len(m)-1] },
		"an absurd length": func(m []byte) []byte { m[12] = 0xff; return m[:ChunkHeaderSize] },
	} {
		var c Chunk
		if err := c.Unmarshal(spoil(good[0].Append(nil))); !errors.Is(err, ErrChunk) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := NewChunkAssembler(2 * ChunkSize)
	long := chunksOf(1, make([]byte, 2*ChunkSize+1))
	if _, _, err := a.Take(&long[0]); !errors.Is(err, ErrChunk) {
		t.Errorf("a frame that is too long: %v", err)
	}
	if _, _, err := a.Take(&good[0]); err != nil {
		t.Fatal(err)
	}
	other := good[1]
	other.Quality = 2
	if _, _, err := a.Take(&other); !errors.Is(err, ErrChunk) {
		t.Errorf("a chunk that contradicts: %v", err)
	}
}

func FuzzChunk(f *testing.F) {
	for _, c := range chunksOf(3, make([]byte, ChunkSize+5)) {
		f.Add(c.Append(nil))
	}
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, message []byte) {
		a := NewChunkAssembler(1 << 20)
		var c Chunk
		if err := c.Unmarshal(message); err != nil {
			if !errors.Is(err, ErrChunk) {
				t.Fatal(err)
			}
			return
		}
		for range 2 {
			if frame, whole, err := a.Take(&c); err == nil && whole && len(frame.Data) != int(c.Length) {
				t.Fatalf("frame of %d bytes, expected %d", len(frame.Data), c.Length)
			}
		}
		again := c
		if !bytes.Equal(again.Append(nil)[ChunkHeaderSize:], c.Data) {
			t.Fatal("the data changed")
		}
	})
}
