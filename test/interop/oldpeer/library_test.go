package oldpeer

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// feed passes payloads to the library as the peer does, in a buffer that is never cleared.
func feed(l *library, payloads ...[]byte) error {
	buffer := make([]byte, bufferSize-rtpHeader)
	var errs []error
	for _, payload := range payloads {
		copy(buffer, payload)
		errs = append(errs, l.packet(true, buffer))
	}
	return errors.Join(errs...)
}

func filled(size int, with byte) []byte { return bytes.Repeat([]byte{with}, size) }

func TestLibraryCompletesByCounting(t *testing.T) {
	source := Source{Client: 1, Tile: 4}
	big := filled(3000, 'b')
	first, second := videoPayloads(1, 10, 4, 0, big), videoPayloads(1, 11, 4, 1, big)
	even := videoPayloads(1, 10, 4, 0, filled(2*videoData, 'e'))
	tests := map[string]struct {
		payloads [][]byte
		fault    error
		want     Reception
	}{
		"in order":     {first, nil, Reception{Frames: 1, Number: 10}},
		"out of order": {[][]byte{first[2], first[0], first[1]}, nil, Reception{Frames: 1, Number: 10}},
		"two qualities, one after the other": {
			[][]byte{first[0], first[1], first[2], second[0], second[1], second[2]}, nil,
			Reception{Frames: 2, Number: 11, Quality: 1},
		},
		"the older one last": {
			[][]byte{second[0], second[1], second[2], first[0], first[1], first[2]}, ErrBackwards,
			Reception{Frames: 1, Rejected: 1, Number: 11, Quality: 1},
		},
		"a packet lost at first": {
			[][]byte{first[0], first[2], second[0], second[1], second[2]}, nil,
			Reception{Frames: 1, Early: 1, Number: 11, Quality: 1},
		},
		"a packet lost later": {
			append(append(slices.Clone(first), second[1:]...), videoPayloads(1, 12, 4, 0, big)...), nil,
			Reception{Frames: 2, Incomplete: 1, Number: 12},
		},
		"a packet twice, before the end": {[][]byte{first[0], first[0], first[1]}, ErrDuplicate,
			Reception{Broken: 1}},
		"a packet twice, counted as whole": {[][]byte{even[0], even[0]}, ErrDuplicate,
			Reception{Frames: 1, Broken: 1, Number: 10}},
		"another quality in the middle": {
			[][]byte{first[0], videoPayloads(1, 10, 4, 1, big)[1]}, ErrMixed, Reception{Broken: 1},
		},
		"the same number again": {append(videoPayloads(1, 10, 4, 1, big), first...), nil,
			Reception{Frames: 2, Repeated: 1, Number: 10}},
		"beyond the end":     {[][]byte{words(1, 10, 100, 90, 20, 4, 0)}, ErrPacket, Reception{}},
		"more than there is": {[][]byte{words(1, 10, 5000, 0, 4000, 4, 0)}, ErrPacket, Reception{}},
		"nothing":            {videoPayloads(1, 10, 4, 0, nil), nil, Reception{Frames: 1, Number: 10}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLibrary()
			if err := feed(l, test.payloads...); !errors.Is(err, test.fault) {
				t.Errorf("the fault is %v, expected %v", err, test.fault)
			}
			if got := l.receptions()[source]; got != test.want {
				t.Errorf("%+v, expected %+v", got, test.want)
			}
		})
	}
}

func TestLibraryHandsOutFrames(t *testing.T) {
	l := newLibrary()
	if err := feed(l, videoPayloads(2, 7, 3, 1, filled(2000, 'v'))...); err != nil {
		t.Fatal(err)
	}
	if err := l.packet(false, append(audioPayloads(2, 9, filled(126, 'a'))[0], make([]byte, 100)...)); err != nil {
		t.Fatal(err)
	}
	l.close()
	var got []Frame
	for f := range l.frames {
		got = append(got, f)
	}
	if len(got) != 2 {
		t.Fatalf("%d frames, expected 2", len(got))
	}
	if f := got[0]; f.Source != (Source{2, 3}) || f.Number != 7 || f.Quality != 1 ||
		!bytes.Equal(f.Data, filled(2000, 'v')) {
		t.Errorf("%+v", f)
	}
	if f := got[1]; f.Source != (Source{2, SoundTile}) || f.Number != 9 || f.Quality != -1 ||
		!bytes.Equal(f.Data, filled(126, 'a')) {
		t.Errorf("%+v", f)
	}
}

func TestInspectorSeesWhyFixedOffsetsFail(t *testing.T) {
	payload := videoPayloads(1, 0, 2, 0, filled(50, 'x'))[0]
	// A header as the original expects it: transport-wide number 7 as the only extension, with ID 1.
	header := []byte{0x90, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0xbe, 0xde, 0, 1, 0x11, 0, 7, 0}
	packet := func(header, payload []byte) []byte { return append(bytes.Clone(header), payload...) }
	bare := bytes.Clone(header[:12])
	bare[0] = 0x80
	source := append(append([]byte{0x91}, header[1:12]...), append([]byte{0, 0, 0, 9}, header[12:]...)...)
	padded := append([]byte{0xb0}, header[1:]...)
	tests := map[string]struct {
		packet []byte
		want   error
	}{
		"as it should be":       {packet(header, payload), nil},
		"no extension":          {packet(bare, payload), ErrHeader},
		"a contributing source": {packet(source, payload), ErrHeader},
		"nothing behind it":     {header, ErrPadding},
		"padding":               {packet(padded, []byte{0, 0, 3}), ErrPadding},
		"half a header":         {packet(header, payload[:20]), ErrPacket},
		"a length too high":     {packet(header, payload[:60]), ErrPacket},
		"of another tile":       {packet(header, videoPayloads(1, 0, 3, 0, filled(50, 'x'))[0]), ErrTrackName},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &inspector{video: true}
			if err := w.name("video_1_2", "2"); err != nil {
				t.Fatal(err)
			}
			buffer := make([]byte, bufferSize)
			copy(buffer, test.packet)
			if err := w.inspect(buffer, len(test.packet)); !errors.Is(err, test.want) || test.want == nil &&
				err != nil {
				t.Errorf("%v, expected %v", err, test.want)
			}
		})
	}
}

func TestInspectorReadsNames(t *testing.T) {
	for _, name := range []struct {
		video      bool
		id, stream string
		good       bool
	}{
		{true, "video_12_3", "3", true},
		{true, "video_12_3", "4", false},
		{true, "video_12_3_1", "3", false},
		{true, "video", "3", false},
		{false, "audio_12", "99", true},
		{false, "audio_12", "0", false},
		{false, "video_1_2", "2", false},
	} {
		err := (&inspector{video: name.video}).name(name.id, name.stream)
		if name.good && err != nil || !name.good && !errors.Is(err, ErrTrackName) {
			t.Errorf("%+v: %v", name, err)
		}
	}
}

func TestInspectorCountsGaps(t *testing.T) {
	w := &inspector{}
	for _, number := range []uint16{65533, 65534, 1, 0, 2, 5} {
		w.follow(number)
	}
	if got := w.takeGaps(); got != 4 || w.takeGaps() != 0 {
		t.Errorf("%d numbers are missing, expected 65535 and 0, which comes late, and 3 and 4", got)
	}
}
