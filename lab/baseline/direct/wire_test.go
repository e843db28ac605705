package direct

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

func TestRequest(t *testing.T) {
	want := carriage.Job{Tile: 14, Quality: 1}
	request := AppendRequest(nil, want)
	if len(request) != RequestSize || !bytes.Equal(request, []byte("vreq\x00\x0e\x01\x00")) {
		t.Errorf("got % x", request)
	}
	if got, err := ParseRequest(request); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "vreq\x00\x0e\x01", "vreq\x00\x0e\x01\x00\x00", "GET / HT",
		"vreq\x01\x00\x01\x00", "vreq\x00\x0e\x40\x00", "vreq\x00\x0e\x01\x01"} {
		if _, err := ParseRequest([]byte(text)); !errors.Is(err, ErrRequest) {
			t.Errorf("%q: got %v, want ErrRequest", text, err)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(AppendRequest(nil, carriage.Job{Tile: 1, Quality: 2}))
	f.Add([]byte("vreq"))
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := ParseRequest(data)
		if err == nil && !bytes.Equal(AppendRequest(nil, job), data) {
			t.Errorf("% x was read as %v", data, job)
		}
	})
}

// framed returns frames in the form of a connection's stream.
func framed(frames ...string) []byte {
	var stream []byte
	for _, f := range frames {
		stream = append(AppendHeader(stream, len(f), time.UnixMilli(5)), f...)
	}
	return stream
}

func TestReadFrame(t *testing.T) {
	stream := bytes.NewReader(framed("one", "", "three"))
	for _, want := range []string{"one", "", "three"} {
		if got, err := ReadFrame(stream); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := ReadFrame(stream); !errors.Is(err, io.EOF) {
		t.Errorf("got %v at the end, want EOF", err)
	}
	other := vr2gather.NewFrameHeader(volumetric.FourCC{'c', 'w', 'i', '1'}, 3, time.Time{}).Append(nil)
	large := vr2gather.NewFrameHeader(codecName, carriage.MaxFrameBytes+1, time.Time{}).Append(nil)
	for name, data := range map[string][]byte{"cut off": framed("four")[:18], "another codec": other,
		"too large": large} {
		if _, err := ReadFrame(bytes.NewReader(data)); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: got %v, want ErrFrame", name, err)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add(framed("one", "two"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			frame, err := ReadFrame(r)
			if err != nil {
				return
			}
			if len(frame) > len(data) {
				t.Fatalf("%d bytes from %d", len(frame), len(data))
			}
		}
	})
}
