package rtc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
)

// frameOf returns a frame of the given length with unique content.
func frameOf(number uint32, length int) []byte {
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(i/ChunkSize + int(number))
	}
	return data
}

func TestPayload(t *testing.T) {
	frame := frameOf(7, 2*ChunkSize+1)
	for offset, want := range map[int]Header{0: {7, 2361, 0, 1180}, ChunkSize: {7, 2361, 1180, 1180},
		2 * ChunkSize: {7, 2361, 2360, 1}} {
		payload := AppendPayload(nil, 7, frame, offset)
		h, chunk, err := Parse(payload)
		if err != nil || h != want || !bytes.Equal(chunk, frame[offset:offset+int(want.Size)]) {
			t.Errorf("at %d: got %+v, %d bytes, %v, want %+v", offset, h, len(chunk), err, want)
		}
	}
	whole := AppendPayload(nil, 7, frame, 0)
	for name, damage := range map[string]func([]byte) []byte{
		"short":     func(b []byte) []byte { return b[:HeaderSize-1] },
		"no frame":  func(b []byte) []byte { clear(b[4:8]); return b },
		"too large": func(b []byte) []byte { b[7] = 0xff; return b },
		"offset":    func(b []byte) []byte { b[8] = 1; return b },
		"beyond":    func(b []byte) []byte { b[8], b[9], b[10] = 0xdc, 0xff, 0x0f; return b },
		"cut off":   func(b []byte) []byte { return b[:len(b)-1] },
		"size":      func(b []byte) []byte { b[12]--; return b[:len(b)-1] },
	} {
		if _, _, err := Parse(damage(bytes.Clone(whole))); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: got %v, want ErrPayload", name, err)
		}
	}
}

// TestTranscripts: each word is FRAME.CHUNK of a frame with 3 chunks, in order of arrival, one per millisecond. The
// output has the time at which each frame was complete.
func TestTranscripts(t *testing.T) {
	many := ""
	for number := 2; number < 2+openFrames; number++ {
		many += fmt.Sprintf(" %d.0", number)
	}
	for _, test := range []struct {
		name, input, output string
		incomplete, late    int64
	}{
		{"in order", "1.0 1.1 1.2 2.0 2.1 2.2", "1 at 2, 2 at 5", 0, 0},
		{"in any order", "1.2 1.0 1.1", "1 at 2", 0, 0},
		{"twice", "1.0 1.0 1.1 1.1 1.2", "1 at 4", 0, 0},
		{"repaired after the next", "1.0 1.2 2.0 2.1 2.2 1.1", "2 at 4, 1 at 5", 0, 0},
		{"of a completed frame", "1.0 1.1 1.2 1.1", "1 at 2", 0, 1},
		{"older than every closed frame", "2.0 2.1 2.2 1.0 1.1 1.2", "2 at 2", 0, 3},
		{"the oldest is given up", "1.0" + many + " 1.1", "", 1, 1},
		{"across zero", "4294967295.0 4294967295.1 0.0 4294967295.2 0.1 0.2", "4294967295 at 3, 0 at 5", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a Assembler
			var got []string
			begin := time.Unix(0, 0)
			for at, word := range strings.Fields(test.input) {
				var number uint32
				var index int
				if _, err := fmt.Sscanf(word, "%d.%d", &number, &index); err != nil {
					t.Fatal(err)
				}
				frame := frameOf(number, 3000)
				arrival, err := a.Push(AppendPayload(nil, number, frame, index*ChunkSize),
					begin.Add(time.Duration(at)*time.Millisecond))
				if err != nil {
					t.Fatal(err)
				}
				if arrival != nil {
					if !bytes.Equal(arrival.Data, frame) {
						t.Errorf("frame %d differs from the sent frame", number)
					}
					got = append(got, fmt.Sprintf("%d at %d", number, arrival.Whole.Sub(begin).Milliseconds()))
				}
			}
			if text := strings.Join(got, ", "); text != test.output || a.Incomplete != test.incomplete ||
				a.Late != test.late {
				t.Errorf("got %q, %d incomplete, %d late, want %q, %d, %d", text, a.Incomplete, a.Late, test.output,
					test.incomplete, test.late)
			}
		})
	}
}

func FuzzPush(f *testing.F) {
	f.Add(AppendPayload(nil, 1, frameOf(1, 10), 0), AppendPayload(nil, 2, frameOf(2, 3000), ChunkSize))
	f.Add([]byte{}, []byte{1})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var a Assembler
		for _, payload := range [][]byte{one, two, one} {
			arrival, err := a.Push(payload, time.Unix(0, 0))
			if err != nil && !errors.Is(err, ErrPayload) {
				t.Errorf("got %v, want ErrPayload", err)
			}
			if arrival != nil && (len(arrival.Data) == 0 || len(arrival.Data) > carriage.MaxFrameBytes) {
				t.Errorf("a frame of %d bytes", len(arrival.Data))
			}
		}
	})
}
