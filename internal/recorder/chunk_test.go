package recorder

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/recording"
)

// TestFrameAcrossBuffers appends frames at each position around the end of a buffer.
func TestFrameAcrossBuffers(t *testing.T) {
	record := recording.Frame{At: time.Unix(1, 2), Publication: 3, Tile: 4, Quality: 1, Number: 5, Capture: 6}
	for _, size := range []int{0, 1, 100, bufferBytes, 3*bufferBytes + 5} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * 7)
		}
		whole := record
		whole.Data = data
		want := recording.Append(nil, &whole)
		for short := range 64 {
			c := &chunk{free: new(buffers)}
			c.append(make([]byte, bufferBytes-short))
			at := c.used
			c.frame(&record, &payload.Frame{Data: data, Length: size})
			if got := bytes.Join(c.written(nil, at), nil); !bytes.Equal(got, want) {
				t.Fatalf("a frame of %d bytes %d bytes before the end of a buffer is recorded differently", size, short)
			}
		}
	}
}

// TestBuffers: the buffer that was returned last is taken first, and the number of unused buffers is bounded.
func TestBuffers(t *testing.T) {
	b := new(buffers)
	first, second := b.take(), b.take()
	b.give([][]byte{first, second})
	if again := b.take(); &again[0] != &second[0] {
		t.Error("the buffer that was returned first is taken first")
	}
	b.give(slices.Repeat([][]byte{first}, 2*spareBuffers))
	if n := len(b.spare); n != spareBuffers {
		t.Errorf("%d buffers are kept, expected %d", n, spareBuffers)
	}
}
