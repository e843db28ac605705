package timeline

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/recording"
)

// tape is a source of records.
type tape []recording.Record

func (t *tape) Next() (recording.Record, error) {
	if len(*t) == 0 {
		return nil, io.EOF
	}
	r := (*t)[0]
	*t = (*t)[1:]
	return r, nil
}

// TestOrder: records come in the order of their times, the frames of a track in that of their numbers, which wrap
// around.
func TestOrder(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	frame := func(ms int, tile int, number uint32) recording.Record {
		return &recording.Frame{At: start.Add(time.Duration(ms) * time.Millisecond), Tile: tile, Number: number}
	}
	source := tape{
		frame(0, 0, 1<<32-2), frame(30, 0, 0), frame(35, 0, 1<<32-1), frame(20, 1, 1<<32-1), frame(40, 1, 0),
		&recording.Message{At: start.Add(10 * time.Millisecond)}, frame(5000, 0, 1), frame(9000, 0, 2),
	}
	line := New(&source)
	var got []string
	read := 0
	for {
		if err := line.Fill(func(recording.Record) { read++ }); err != nil {
			t.Fatal(err)
		}
		r, _, ok := line.Next()
		if !ok {
			break
		}
		switch r := r.(type) {
		case *recording.Frame:
			got = append(got, fmt.Sprintf("%d/%d", r.Tile, int32(r.Number)))
		default:
			got = append(got, "message")
		}
		if len(got) == 1 && read != 7 {
			t.Errorf("%d records are read ahead, expected 7: those of 2 s and the next one", read)
		}
	}
	if want := "0/-2 message 1/-1 0/-1 0/0 1/0 0/1 0/2"; strings.Join(got, " ") != want {
		t.Errorf("got %s, expected %s", strings.Join(got, " "), want)
	}
}
