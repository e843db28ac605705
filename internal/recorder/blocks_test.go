package recorder

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestBlocks appends random lengths and compares the file after every flush.
func TestBlocks(t *testing.T) {
	for _, direct := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "file")
		file, can, err := create(path)
		if err != nil {
			t.Fatal(err)
		}
		if !direct {
			if err := endDirect(file); err != nil {
				t.Fatal(err)
			}
		}
		random := rand.New(rand.NewPCG(1, 2))
		data := make([]byte, 5<<20)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		out, memory, sent := &blocks{file: file, direct: direct && can}, newBuffers(), 0
		for sent < len(data) {
			out.begin(memory.take())
			for range 1 + random.IntN(5) {
				n := min(len(data)-sent, []int{0, 1, 40, 1144, 4096, 100_000, 1 << 20, 2<<20 + 1}[random.IntN(8)])
				if err := out.append(data[sent : sent+n]); err != nil {
					t.Fatal(err)
				}
				sent += n
			}
			if err := out.flush(); err != nil {
				t.Fatal(err)
			}
			memory.give(out.end())
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			rest := got[min(sent, len(got)):]
			if len(got) < sent || !bytes.Equal(got[:sent], data[:sent]) || len(rest) >= blockSize ||
				len(bytes.Trim(rest, "\x00")) > 0 {
				t.Fatalf("the file has %d bytes after %d, direct %t", len(got), sent, direct)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := create(path); !errors.Is(err, os.ErrExist) {
			t.Errorf("the file is created twice: %v", err)
		}
	}
}
