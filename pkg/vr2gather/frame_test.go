package vr2gather_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/vr2gather"
)

func TestFrameHeaderLayout(t *testing.T) {
	capture := time.UnixMilli(0x0123456789ab).UTC()
	header := vr2gather.NewFrameHeader(vr2gather.CodecOctree, 0x0a0b, capture.Add(999*time.Microsecond))
	frame := append(header.Append([]byte("before")), make([]byte, 0x0a0b)...)[len("before"):]
	want := []byte{0x31, 0x69, 0x77, 0x63, 0x0b, 0x0a, 0, 0, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 0, 0}
	if !bytes.Equal(frame[:vr2gather.FrameHeaderSize], want) {
		t.Errorf("got  % x\nwant % x", frame[:vr2gather.FrameHeaderSize], want)
	}
	var parsed vr2gather.FrameHeader
	data, err := parsed.Parse(append(frame, "padding"...))
	if err != nil || parsed != header || len(data) != 0x0a0b || !parsed.Capture().Equal(capture) {
		t.Errorf("got %+v, %d bytes and %v, want %+v", parsed, len(data), err, header)
	}
}

func TestFrameHeaderWithoutTime(t *testing.T) {
	header := vr2gather.NewFrameHeader(vr2gather.CodecVoice, 0, time.Time{})
	if header.TimestampMS != 0 || !header.Capture().IsZero() {
		t.Errorf("got %d ms and %v, want none", header.TimestampMS, header.Capture())
	}
	if before := vr2gather.NewFrameHeader(vr2gather.CodecVoice, 0, time.Unix(-5, 0)); before.TimestampMS != 0 {
		t.Errorf("got %d ms for a time before 1970, want 0", before.TimestampMS)
	}
}

func TestFrameHeaderMalformed(t *testing.T) {
	header := vr2gather.FrameHeader{FourCC: vr2gather.CodecRawPoints, Length: 4, TimestampMS: 1}.Append(nil)
	spoil := func(at int, with byte) []byte {
		spoilt := append(bytes.Clone(header), 1, 2, 3, 4)
		spoilt[at] = with
		return spoilt
	}
	cases := map[string]struct {
		frame []byte
		says  string
	}{
		"nothing":         {nil, "0 bytes, expected at least 16"},
		"half a header":   {header[:8], "8 bytes, expected at least 16"},
		"data missing":    {append(bytes.Clone(header), 1, 2, 3), "announces 4 bytes, 3 follow"},
		"negative length": {spoil(7, 0xff), "expected 0 or more for both"},
		"negative time":   {spoil(15, 0x80), "expected 0 or more for both"},
	}
	for name, c := range cases {
		parsed := vr2gather.FrameHeader{Length: 77}
		if _, err := parsed.Parse(
			c.frame,
		); !errors.Is(err, vr2gather.ErrFrame) || !strings.Contains(err.Error(), c.says) ||
			parsed.Length != 77 {
			t.Errorf(
				"%s: got %+v and %v, want ErrFrame that says %q and the header as it was",
				name,
				parsed,
				err,
				c.says,
			)
		}
	}
}

func FuzzFrameHeader(f *testing.F) {
	f.Add(
		append(
			vr2gather.FrameHeader{
				FourCC:      vr2gather.CodecRawPoints,
				Length:      3,
				TimestampMS: 1_700_000_000_000,
			}.Append(
				nil,
			),
			1,
			2,
			3,
		),
	)
	f.Add(bytes.Repeat([]byte{0xff}, 16))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		var header vr2gather.FrameHeader
		data, err := header.Parse(frame)
		if err != nil {
			if !errors.Is(err, vr2gather.ErrFrame) || data != nil {
				t.Fatalf("%d bytes and %v", len(data), err)
			}
			return
		}
		again := append(header.Append(nil), data...)
		if !bytes.HasPrefix(frame, again) ||
			!header.Capture().IsZero() && uint64(header.Capture().UnixMilli()) != header.TimestampMS {
			t.Fatalf("% x was read as % x at %v", frame, again, header.Capture())
		}
	})
}
