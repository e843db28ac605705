package carriage

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestFrame(t *testing.T) {
	want := Frame{Tile: 14, Quality: 1, Number: 1 << 31, Codec: volumetric.FourCC{'d', 'r', 'c', 'o'},
		Capture: time.Unix(1700000000, 123456789), Data: []byte("points")}
	sealed := want
	sealed.Seal(nil)
	var got Frame
	if err := got.Open(sealed.Bytes); err != nil {
		t.Fatal(err)
	}
	if got.Tile != want.Tile || got.Quality != want.Quality || got.Number != want.Number || got.Codec != want.Codec ||
		!got.Capture.Equal(want.Capture) || !bytes.Equal(got.Data, want.Data) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty":                func([]byte) []byte { return nil },
		"short":                func(b []byte) []byte { return b[:EnvelopeSize-1] },
		"no envelope":          func(b []byte) []byte { b[0] = 0; return b },
		"another quality":      func(b []byte) []byte { b[6] = volumetric.MaxQualities; return b },
		"a tile out of range":  func(b []byte) []byte { b[4] = 1; return b },
		"a hole":               func(b []byte) []byte { b[EnvelopeSize] = 0; return b },
		"cut off":              func(b []byte) []byte { return b[:len(b)-1] },
		"with a trailing byte": func(b []byte) []byte { return append(b, 0) },
		"unknown version":      func(b []byte) []byte { b[7] = 1; return b },
	} {
		if err := got.Open(damage(bytes.Clone(sealed.Bytes))); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: got %v, want ErrFrame", name, err)
		}
	}
}

// TestSealReuses: a frame that fits into the buffer allocates no memory.
func TestSealReuses(t *testing.T) {
	f := Frame{Data: make([]byte, 1000)}
	buffer := make([]byte, 0, 2000)
	content := f.Data
	if n := testing.AllocsPerRun(100, func() { f.Data = content; f.Seal(buffer) }); n != 0 {
		t.Errorf("got %g allocations, want none", n)
	}
}

func FuzzFrame(f *testing.F) {
	frame := Frame{Tile: 3, Number: 7, Data: []byte{1, 2, 3}, Capture: time.Unix(5, 0)}
	frame.Seal(nil)
	f.Add(frame.Bytes)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var got Frame
		if got.Open(data) != nil {
			return
		}
		again := got
		again.Seal(nil)
		if !bytes.Equal(again.Bytes, data) {
			t.Errorf("% x was read and written as % x", data, again.Bytes)
		}
	})
}
