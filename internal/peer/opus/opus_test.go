package opus

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"
)

func TestTone(t *testing.T) {
	tone := Tone()
	var total time.Duration
	for i, p := range tone.Packets {
		if p.Duration != 20*time.Millisecond {
			t.Errorf("packet %d lasts %v, expected 20ms", i, p.Duration)
		}
		total += p.Duration
	}
	// Two seconds and the encoder's pre-skip of 312 samples, in whole packets.
	if total != 2020*time.Millisecond {
		t.Errorf("the tone lasts %v, expected 2.02 s", total)
	}
}

func TestDuration(t *testing.T) {
	tests := []struct {
		packet []byte
		want   time.Duration
	}{
		{[]byte{0 << 3}, 10 * time.Millisecond},
		{[]byte{3 << 3}, 60 * time.Millisecond},
		{[]byte{3<<3 | 1}, 120 * time.Millisecond},
		{[]byte{13 << 3}, 20 * time.Millisecond},
		{[]byte{16 << 3}, 2500 * time.Microsecond},
		{[]byte{31<<3 | 2}, 40 * time.Millisecond},
		{[]byte{31<<3 | 3, 6}, 120 * time.Millisecond},
		{[]byte{31<<3 | 3, 7}, 0},
		{[]byte{31<<3 | 3, 0}, 0},
		{[]byte{31<<3 | 3}, 0},
		{nil, 0},
	}
	for _, test := range tests {
		got, err := Duration(test.packet)
		if got != test.want || (err != nil) != (test.want == 0) || err != nil && !errors.Is(err, ErrPacket) {
			t.Errorf("%v: expected %v, got %v, %v", test.packet, test.want, got, err)
		}
	}
}

func TestPlayback(t *testing.T) {
	recording := &Recording{Packets: []Packet{{Data: []byte{1}, Duration: 20 * time.Millisecond},
		{Data: []byte{2}, Duration: 40 * time.Millisecond}}}
	start := time.Unix(100, 0)
	p := NewPlayback(recording, start)
	var got []int64
	for ms := range 150 {
		for {
			packet, begin, ok := p.Next(start.Add(time.Duration(ms) * time.Millisecond))
			if !ok {
				break
			}
			got = append(got, int64(packet.Data[0]), begin.Sub(start).Milliseconds())
		}
	}
	want := []int64{1, 0, 2, 20, 1, 60, 2, 80, 1, 120, 2, 140}
	if !equal(got, want) {
		t.Errorf("expected packets and times %v, got %v", want, got)
	}
	// After a suspension, playback continues from now instead of catching up.
	if _, begin, _ := p.Next(start.Add(time.Hour)); !begin.Equal(start.Add(time.Hour)) {
		t.Errorf("expected to go on after an hour, got %v", begin.Sub(start))
	}
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestRecorder records the tone with one packet lost, two swapped and one duplicated, across the wrap of sequence
// numbers.
func TestRecorder(t *testing.T) {
	tone := Tone()
	name := filepath.Join(t.TempDir(), "out.ogg")
	recorder, err := NewRecorder(name, 2)
	if err != nil {
		t.Fatal(err)
	}
	order := make([]int, len(tone.Packets))
	for i := range order {
		order[i] = i
	}
	order[30], order[31] = 31, 30
	const lost = 50
	order[lost] = 40 // a second time
	for _, i := range order {
		packet := &rtp.Packet{Header: rtp.Header{SequenceNumber: uint16(65500 + i), Timestamp: uint32(960 * i)},
			Payload: tone.Packets[i].Data}
		if err := recorder.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Packets) != len(tone.Packets) {
		t.Fatalf("expected %d packets, got %d", len(tone.Packets), len(got.Packets))
	}
	for i, p := range got.Packets {
		want := tone.Packets[i].Data
		if i == lost {
			want = []byte{tone.Packets[i].Data[0] &^ 3}
		}
		if !bytes.Equal(p.Data, want) || p.Duration != 20*time.Millisecond {
			t.Errorf("packet %d: expected %d bytes, got %d of %v", i, len(want), len(p.Data), p.Duration)
		}
	}
}

func TestReadErrors(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "EOF"},
		{"not Ogg", []byte(strings.Repeat("RIFF", 100)), ""},
		{"cut", toneFile[:5000], ""},
		{"nothing but headers", toneFile[:841], "the file has no audio"},
		{"without comments", append(bytes.Clone(toneFile[:47]), toneFile[841:]...), "expected OpusTags"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Read(bytes.NewReader(test.data))
			if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("expected an error with %q, got %v, %v", test.want, got, err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.ogg")); !os.IsNotExist(err) {
		t.Errorf("expected an error about a missing file, got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(toneFile)
	f.Add(toneFile[:841])
	f.Fuzz(func(t *testing.T, data []byte) {
		recording, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, p := range recording.Packets {
			if p.Duration <= 0 || p.Duration > maxDuration || len(p.Data) == 0 {
				t.Errorf("a packet of %d bytes lasts %v", len(p.Data), p.Duration)
			}
		}
	})
}

// FuzzPage bypasses the checksums of pages, which random bytes hardly ever match.
func FuzzPage(f *testing.F) {
	f.Add(toneFile[47:841], toneFile[8706:])
	f.Fuzz(func(t *testing.T, first, second []byte) {
		d := demuxer{recording: &Recording{Channels: 1}, tagged: true}
		for _, page := range [][]byte{first, second} {
			if len(page) < lacingOffset || len(page) < lacingOffset+int(page[segmentsOffset]) {
				return
			}
			size := 0
			for _, s := range page[lacingOffset : lacingOffset+int(page[segmentsOffset])] {
				size += int(s)
			}
			if len(page) < lacingOffset+int(page[segmentsOffset])+size {
				return
			}
			if d.serial = serial(page); d.page(page) != nil {
				return
			}
		}
	})
}
