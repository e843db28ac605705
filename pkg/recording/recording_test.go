package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

var start = time.Date(2026, 11, 26, 22, 53, 0, 123456789, time.UTC)

// records is a segment with every kind of record.
func records() []Record {
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	return []Record{
		&Head{Room: "lab", Recording: "r1", Segment: 1, Begun: start, Server: "dev"},
		&Message{At: at(1), Text: []byte(`{"type":"participant_joined"}`)},
		&Publication{At: at(2), ID: 7, Participant: "alice", Qualities: Best, Description: volumetric.Publication{
			Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
			Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles: make([]volumetric.Tile, 2), Qualities: make([]volumetric.QualityLevel, 3),
		}},
		&Frame{At: at(3), Capture: 0xeeaae5f840000003, Publication: 7, Number: 1 << 31, Tile: 1, Quality: 2,
			Prefixed: true, Codec: volumetric.FourCC{'d', 'r', 'c', 'o'}, Data: []byte("tile!")},
		&Frame{At: at(4), Publication: 7, Number: 5, Data: []byte{}},
		&Unit{At: at(5), Capture: 9, Publication: 8, Timestamp: 48000, Payloads: [][]byte{{1, 2}, {}, {3}}},
		&Lost{At: at(6), Incomplete: 1, Overrun: 2, Discarded: 3},
		&End{At: at(7), Continues: true, Reason: "the segment is full"},
	}
}

func encoded(list []Record) []byte {
	var data []byte
	for _, r := range list {
		data = Append(data, r)
	}
	return data
}

// textOf returns a record as text, for comparisons.
func textOf(t testing.TB, r Record) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return r.When().UTC().Format(time.RFC3339Nano) + " " + string(text)
}

// read returns the records of a segment as text, and the segment.
func read(t testing.TB, data []byte) ([]string, *segment) {
	t.Helper()
	s, err := newSegment(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		if !errors.Is(err, ErrFormat) {
			t.Fatal(err)
		}
		return nil, nil
	}
	var texts []string
	for {
		r, err := s.next()
		if errors.Is(err, io.EOF) {
			return texts, s
		}
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, textOf(t, r))
	}
}

func expected(t testing.TB, list []Record) []string {
	t.Helper()
	var texts []string
	for _, r := range list {
		texts = append(texts, textOf(t, r))
	}
	return texts
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("%s: got\n%s\nexpected\n%s", what, a, b)
	}
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	got, s := read(t, encoded(records()))
	equal(t, "all", got, expected(t, records()))
	if s.torn != 0 || s.skipped != 0 || !s.ended {
		t.Errorf("%d bytes torn, %d skipped, ended %v", s.torn, s.skipped, s.ended)
	}
}

// TestCutOffAnywhere checks that all records before the end of a truncated file are read, for every length.
func TestCutOffAnywhere(t *testing.T) {
	list := records()
	data := encoded(list)
	for size := range data {
		whole, end := 0, 0
		for n := range list {
			if length := len(encoded(list[:n+1])); length <= size {
				whole, end = n+1, length
			}
		}
		got, s := read(t, data[:size])
		equal(t, "cut off", got, expected(t, list[:whole]))
		if s != nil && (s.torn != int64(size-end) || s.skipped != 0 || s.ended) {
			t.Errorf("%d bytes: %d torn, %d skipped, ended %v, expected %d torn", size, s.torn, s.skipped, s.ended,
				size-end)
		}
	}
}

// TestDamageCostsOneRecord checks that a changed byte costs no more than its record.
func TestDamageCostsOneRecord(t *testing.T) {
	list := records()
	data := encoded(list)
	for at := len(encoded(list[:1])); at < len(data); at++ {
		damaged := bytes.Clone(data)
		damaged[at] ^= 0x20
		hit := 0
		for len(encoded(list[:hit+1])) <= at {
			hit++
		}
		rest := append(append([]Record{}, list[:hit]...), list[hit+1:]...)
		got, s := read(t, damaged)
		equal(t, "damaged", got, expected(t, rest))
		if lost := int64(len(encoded(list[:hit+1])) - len(encoded(list[:hit]))); s.torn+s.skipped != lost {
			t.Errorf("byte %d: %d torn, %d skipped, expected %d", at, s.torn, s.skipped, lost)
		}
	}
}

// TestSearchIsBounded checks the work for a file of headers that all claim the rest of the file.
func TestSearchIsBounded(t *testing.T) {
	data := encoded(records()[:1])
	size := 1 << 20
	for len(data) < size {
		from := len(data)
		data = finish(begin(data), from, kindFrame)
		h := data[from:]
		h[4], h[5], h[6] = byte((size-from-headerSize)&0xff), byte((size-from-headerSize)>>8), byte((size-from)>>16)
		copy(h[checked:], sumOf(h[:checked]))
	}
	got, s := read(t, data)
	if len(got) != 1 || s.vain < -2*int64(len(data)) {
		t.Errorf("%d records, %d bytes checked in vain of a file of %d", len(got),
			searchShare*int64(len(data))+searchLeast-s.vain, len(data))
	}
}

// TestSearchesAreBounded checks the work for a file of headers that each begin another search, because the checksum of
// an empty payload is wrong.
func TestSearchesAreBounded(t *testing.T) {
	data := encoded(records()[:1])
	for len(data) < 1<<20 {
		from := len(data)
		data = finish(begin(data), from, kindFrame)
		h := data[from:]
		h[8]++
		copy(h[checked:], sumOf(h[:checked]))
	}
	source := &counted{Reader: bytes.NewReader(data)}
	s, err := newSegment(source, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.next()
	}
	if limit := int64(2*searchShare*len(data) + 2*searchLeast); !errors.Is(err, io.EOF) || source.read > limit {
		t.Errorf("%v after %d bytes were read of a file of %d, expected %d at most", err, source.read, len(data), limit)
	}
}

// counted counts the bytes that are read.
type counted struct {
	*bytes.Reader
	read int64
}

// ReadAt implements io.ReaderAt.
func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(p, at)
	c.read += int64(n)
	return n, err
}

func sumOf(data []byte) []byte {
	sum := finish(append(begin(nil), data...), 0, kindFrame)
	return sum[8:12]
}

func TestSegmentsOfARecording(t *testing.T) {
	dir := t.TempDir()
	list := records()
	second := append([]Record{&Head{Room: "lab", Recording: "r1", Segment: 2, Begun: start}}, list[1:5]...)
	for name, data := range map[string][]byte{
		SegmentName(1): encoded(list), SegmentName(2): []byte("VOLROOM1 damaged"), SegmentName(10): encoded(second),
		"notes.txt": []byte("not a segment"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	n := 0
	for ; ; n++ {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != len(list)+len(second) {
		t.Errorf("%d records, expected %d", n, len(list)+len(second))
	}
	if d := r.Damage(); d != (Damage{CutOff: 2}) {
		t.Errorf("damage %+v, expected two segments without an end", d)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNone) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "notes.txt")); !errors.Is(err, ErrFormat) {
		t.Errorf("another file: %v", err)
	}
}

func TestRoomFoldersStayInTheDirectory(t *testing.T) {
	seen := make(map[string]bool)
	for _, room := range []string{"lab", "..", "../../etc", "a/b", ".", "Ä", strings.Repeat("ä", 64),
		strings.Repeat("ä", 63) + "b", strings.Repeat("/", 128)} {
		name := RoomFolder(room)
		if name != filepath.Base(name) || strings.HasPrefix(name, ".") || len(name) > maxFolder || seen[name] {
			t.Errorf("%q is recorded in %q", room, name)
		}
		seen[name] = true
	}
}

// FuzzReader reads arbitrary bytes as a segment: no panic, and no more memory than the file has.
func FuzzReader(f *testing.F) {
	data := encoded(records())
	f.Add(data)
	f.Add(data[:len(data)-9])
	f.Add(append(bytes.Clone(data[:200]), data...))
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := newSegment(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for n := 0; ; n++ {
			r, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if n > len(data)/headerSize {
				t.Fatal("more records than the file has room for")
			}
			if p, ok := r.(*Publication); ok {
				if err := p.Description.Validate(); err != nil {
					t.Fatal(err)
				}
			}
			if _, ok := r.(*Head); !ok {
				continue
			}
			r.When()
		}
		if cap(s.payload) > 2*len(data) {
			t.Errorf("%d bytes of memory for a file of %d", cap(s.payload), len(data))
		}
		if s.torn+s.skipped > int64(len(data)) {
			t.Errorf("%d bytes torn and %d skipped of %d", s.torn, s.skipped, len(data))
		}
	})
}
