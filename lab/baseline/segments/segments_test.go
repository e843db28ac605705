package segments

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
)

// patience is far longer than any step of these tests.
const patience = time.Minute

func boxed(frames ...string) []byte {
	var segment []byte
	for _, f := range frames {
		segment = append(AppendBoxHeader(segment, len(f)), f...)
	}
	return segment
}

func TestBox(t *testing.T) {
	r := bytes.NewReader(boxed("one", "", "three"))
	for _, want := range []string{"one", "", "three"} {
		if got, err := ReadBox(r); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := ReadBox(r); !errors.Is(err, io.EOF) {
		t.Errorf("got %v at the end, want EOF", err)
	}
	for name, data := range map[string]string{
		"type": "\x00\x00\x00\x09moofx", "size below its header": "\x00\x00\x00\x07mdat",
		"too large": "\xff\xff\xff\xffmdat", "cut off": "\x00\x00\x00\x10mdatx",
	} {
		if _, err := ReadBox(strings.NewReader(data)); !errors.Is(err, ErrBox) {
			t.Errorf("%s: got %v, want ErrBox", name, err)
		}
	}
}

func FuzzReadBox(f *testing.F) {
	f.Add(boxed("one", "two"))
	f.Add([]byte("\x00\x00\x00\x08mdat"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			frame, err := ReadBox(r)
			if err != nil {
				return
			}
			if len(frame) > len(data) {
				t.Fatalf("%d bytes from %d", len(frame), len(data))
			}
		}
	})
}

func FuzzParsePath(f *testing.F) {
	f.Add("14", "1", "123")
	f.Add("-1", "x", "99999999999999999999")
	f.Fuzz(func(t *testing.T, tile, quality, segment string) {
		job, number, err := parsePath(tile, quality, segment)
		if err == nil && (job.Tile < 0 || job.Quality < 0 || number < 0) {
			t.Errorf("%q, %q, %q were read as %v, %d", tile, quality, segment, job, number)
		}
		if err != nil && !errors.Is(err, ErrPath) {
			t.Errorf("got %v, want ErrPath", err)
		}
	})
}

// TestOrigin reads a segment while it is uploaded, and requests segments that are gone, that begin later, and that
// never begin.
func TestOrigin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, job := newOrigin(), carriage.Job{Tile: 1, Quality: 1}
	begun := make(chan int64, 1)
	go func() {
		number, err := o.latest(ctx, "a", 1)
		if err != nil {
			t.Error(err)
		}
		begun <- number
	}()
	upload, body := io.Pipe()
	taken := make(chan error, 1)
	go func() { taken <- o.receive(o.begin("a", job, 5), upload) }()
	if number := <-begun; number != 5 {
		t.Errorf("the latest segment is %d, want 5", number)
	}
	s, err := o.find(ctx, "a", job, 5)
	if err != nil {
		t.Fatal(err)
	}
	download, sink := io.Pipe()
	given := make(chan error, 1)
	go func() {
		err := o.send(ctx, s, sink, func() {})
		_ = sink.Close()
		given <- err
	}()
	got := make([]byte, 3)
	for _, part := range []string{"one", "two"} {
		// The second part is sent once the first has arrived at the other side.
		if _, err := body.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(download, got); err != nil || string(got) != part {
			t.Errorf("got %q, %v, want %q", got, err, part)
		}
	}
	_ = body.Close()
	if rest, err := io.ReadAll(download); err != nil || len(rest) != 0 {
		t.Errorf("got %q, %v at the end", rest, err)
	}
	if err := errors.Join(<-taken, <-given); err != nil {
		t.Error(err)
	}
	for number := int64(6); number < 6+keptSegments; number++ {
		o.begin("a", job, number)
	}
	if _, err := o.find(ctx, "a", job, 5); !errors.Is(err, errGone) {
		t.Errorf("got %v, want errGone", err)
	}
	o.end("a")
	if _, err := o.find(ctx, "a", job, 100); !errors.Is(err, errEnded) {
		t.Errorf("got %v, want errEnded", err)
	}
	cancel()
	if _, err := o.latest(ctx, "b", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v from a missing peer, want to wait until cancelled", err)
	}
}
