package payload

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// chunksOf cuts a frame into chunks.
func chunksOf(frame uint32, data []byte) []Chunk { return cutFrame(Chunk{Frame: frame}, data) }

// numberedOf cuts a frame into numbered chunks, from a number on.
func numberedOf(frame uint32, data []byte, number uint16) []Chunk {
	return cutFrame(Chunk{Frame: frame, Numbered: true, Number: number}, data)
}

// cutFrame cuts a frame into chunks with the form and the first number of c.
func cutFrame(c Chunk, data []byte) []Chunk {
	c.Quality, c.Tile, c.Length, c.Timestamp = 1, 3, uint32(len(data)), c.Frame*3000
	var chunks []Chunk
	for i := range c.Count() {
		c.Index, c.Data = uint16(i), data[i*c.Size():min((i+1)*c.Size(), len(data))]
		chunks = append(chunks, c)
		if c.Numbered {
			c.Number++
		}
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
		if random.IntN(2) == 0 {
			chunks = numberedOf(frame, data, uint16(random.Uint32()))
		}
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
			if read.Numbered != c.Numbered || read.Number != c.Number {
				t.Fatalf("chunk %d came as chunk %d", c.Number, read.Number)
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
	old := chunksOf(11-maxAssemblies, []byte{1})
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
		"another version":  func(m []byte) []byte { m[0] = 3; return m },
		"another form":     func(m []byte) []byte { m[0] = 2; return m },
		"without a number": func(m []byte) []byte { m[0] = 2; return m[:NumberedHeaderSize-1] },
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
	for name, spoil := range map[string]func(*Chunk){
		"another quality": func(c *Chunk) { c.Quality = 2 },
		"another form":    func(c *Chunk) { c.Numbered = true },
	} {
		other := good[1]
		spoil(&other)
		if _, _, err := a.Take(&other); !errors.Is(err, ErrChunk) {
			t.Errorf("a chunk that contradicts, %s: %v", name, err)
		}
	}
}

func FuzzChunk(f *testing.F) {
	for _, c := range chunksOf(3, make([]byte, ChunkSize+5)) {
		f.Add(c.Append(nil))
	}
	for _, c := range numberedOf(4, make([]byte, NumberedChunkSize+5), 0xffff) {
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
		// Unknown flags and the reserved byte are ignored.
		read := bytes.Clone(message)
		read[1] &= flagPrefixed
		read[5] = 0
		if !bytes.Equal(again.Append(nil), read) {
			t.Fatal("the chunk changed")
		}
	})
}
