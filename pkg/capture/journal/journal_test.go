package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/allocations"
)

var begun = time.Now().Round(0).UTC()

var heads = map[Content]Head{
	Points: {
		Content:     Points,
		Description: "a figure",
		Begun:       begun,
		FrameRate:   30,
		Points:      3,
		Box:         volumetric.BoundingBox{Max: [3]float32{1, 2, 3}},
	},
	Images: {Content: Images, Description: "two cameras", Begun: begun, FrameRate: 15, Cameras: []depth.Camera{
		{
			Name:       "left",
			Width:      2,
			Height:     2,
			FX:         2,
			FY:         2,
			Unit:       0.001,
			Distortion: depth.Distortion{Model: depth.Rational, Coefficients: [8]float64{1, 2}, Radius: 1.7},
		},
		{
			Name:   "right",
			Width:  2,
			Height: 1,
			FX:     2,
			FY:     2,
			Unit:   0.001,
			Pose:   depth.Pose{Translation: [3]float64{1, 0, 0}},
		},
	}},
	Encoded: {
		Content:     Encoded,
		Description: "a figure",
		Begun:       begun,
		FrameRate:   30,
		Publication: &volumetric.Publication{
			Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
			Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			FrameRate: 30, Tiles: make([]volumetric.Tile, 2), Qualities: make([]volumetric.QualityLevel, 3),
		},
	},
}

var frames = []Frame{
	{
		Number:  0,
		Capture: begun,
		Cloud: pointcloud.Cloud{
			Positions: [][3]float32{{1, 2, 3}, {0, 0, 0}},
			Colors:    [][3]uint8{{1, 2, 3}, {4, 5, 6}},
		},
	},
	{Number: 1, Capture: begun.Add(33 * time.Millisecond)},
	{Number: 4, Capture: begun.Add(133 * time.Millisecond), Cloud: pointcloud.Cloud{
		Positions: [][3]float32{{1, 2, 3}}, Colors: [][3]uint8{{1, 2, 3}}, Labels: []uint16{700}, Sources: []uint16{3},
	}},
}

var pictures = []Frame{
	{Number: 2, Capture: begun, Images: []depth.Image{
		{
			Depth:  []uint16{1, 2, 3, 4},
			Colors: [][3]uint8{{1}, {2}, {3}, {4}},
			Labels: []uint16{9, 8, 7, 6},
		}, {Depth: []uint16{500, 600}},
	}},
	{
		Number:  3,
		Capture: begun.Add(time.Second),
		Images:  []depth.Image{{}, {Depth: []uint16{1, 1}, Colors: [][3]uint8{{1}, {2}}}},
	},
}

// written writes a journal of frames.
func written(t testing.TB, head Head, frames []Frame) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	w, err := Create(path, head)
	if err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		if err := w.WriteFrame(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Sync(), w.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if n, size := w.Written(); err != nil || n != int64(len(frames)) || size != info.Size() {
		t.Errorf("%d frames and %d bytes written, expected %d and %d: %v", n, size, len(frames), info.Size(), err)
	}
	return path
}

func open(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// same compares frames. Nil slices equal empty ones.
func same(t *testing.T, got, expected *Frame) {
	t.Helper()
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(expected)
	clean := func(data []byte) string { return strings.ReplaceAll(string(data), "[]", "null") }
	if errA != nil || errB != nil || clean(a) != clean(b) {
		t.Errorf("got %s, expected %s", a, b)
	}
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	for content, expected := range map[Content][]Frame{Points: frames, Images: pictures} {
		r := open(t, written(t, heads[content], expected))
		if !reflect.DeepEqual(r.Head(), heads[content]) || r.Torn() != 0 || len(r.Entries()) != len(expected) {
			t.Errorf("%s: %+v with %d frames, %d bytes torn", content, r.Head(), len(r.Entries()), r.Torn())
		}
		var got Frame
		for range 2 { // the second time into a used frame
			for i := range expected {
				if err := r.ReadFrame(i, &got); err != nil {
					t.Fatal(err)
				}
				got.Capture = got.Capture.UTC()
				same(t, &got, &expected[i])
				e := r.Entries()[i]
				if since := expected[i].Capture.Sub(
					begun,
				); e.Captured != since || e.Number != expected[i].Number ||
					!e.Wall.Equal(expected[i].Capture) {
					t.Errorf("%s: frame %d is %+v", content, i, e)
				}
			}
		}
		if err := r.ReadTile(0, new(Tile)); !errors.Is(err, ErrContent) {
			t.Errorf("%s: a tile of it: %v", content, err)
		}
	}
}

func TestTilesAreReadAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	w, err := Create(path, heads[Encoded])
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFrame(&frames[0]); !errors.Is(err, ErrContent) {
		t.Errorf("a captured frame: %v", err)
	}
	start := time.Now()
	var group sync.WaitGroup
	for worker := range 3 { // as encoders do
		group.Go(func() {
			for n := range 20 {
				tile := Tile{
					Number: uint32(
						100 + n,
					), Capture: start.Add(time.Duration(n) * time.Millisecond), Tile: n % 2,
					Quality: volumetric.Quality(worker),
					Codec:   volumetric.FourCC{'r', 'a', 'w', '0'},
					Data:    bytes.Repeat([]byte{byte(worker), byte(n)}, n),
				}
				if err := w.WriteTile(&tile); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if len(r.Entries()) != 60 {
		t.Fatalf("%d tiles", len(r.Entries()))
	}
	var tile Tile
	next := [3]int{}
	last := time.Duration(0)
	for i, e := range r.Entries() {
		if err := r.ReadTile(i, &tile); err != nil {
			t.Fatal(err)
		}
		n := next[tile.Quality]
		next[tile.Quality]++
		if tile.Number != uint32(100+n) || tile.Tile != n%2 ||
			!bytes.Equal(tile.Data, bytes.Repeat([]byte{byte(tile.Quality), byte(n)}, n)) ||
			tile.Codec.String() != "raw0" ||
			e.Bytes != len(tile.Data) || e.Tile != tile.Tile || e.Quality != tile.Quality ||
			e.Codec != tile.Codec ||
			!tile.Capture.Equal(e.Wall) {
			t.Errorf("tile %d is %+v, %+v", i, tile, e)
		}
		if e.Written < last {
			t.Errorf("tile %d comes %v before the one before it", i, last-e.Written)
		}
		last = e.Written
	}
	if err := r.ReadFrame(0, new(Frame)); !errors.Is(err, ErrContent) {
		t.Errorf("a captured frame of it: %v", err)
	}
}

// TestCutOffAnywhere checks that the frames written before a crash are readable, for any position
// of the crash.
func TestCutOffAnywhere(t *testing.T) {
	data, err := os.ReadFile(written(t, heads[Points], frames))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := newReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for size := range len(data) {
		expected := 0
		for _, e := range whole.entries {
			if e.from+recordSize+int64(e.length) <= int64(size) {
				expected++
			}
		}
		r, err := newReader(bytes.NewReader(data[:size]), int64(size))
		if expected == 0 {
			if !errors.Is(err, ErrJournal) {
				t.Errorf("%d bytes: %v", size, err)
			}
			continue
		}
		if err != nil || len(r.Entries()) != expected || r.ReadFrame(expected-1, new(Frame)) != nil {
			t.Errorf("%d bytes: %d frames, expected %d: %v", size, len(r.Entries()), expected, err)
		}
		end := r.entries[expected-1].from + recordSize + int64(r.entries[expected-1].length)
		if r.Torn() != int64(size)-end {
			t.Errorf("%d bytes: %d torn, expected %d", size, r.Torn(), int64(size)-end)
		}
	}
}

// TestDamageIsFound checks that a flipped bit is an error of its frame alone, or ends the journal
// before it.
func TestDamageIsFound(t *testing.T) {
	data, err := os.ReadFile(written(t, heads[Points], frames))
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		damaged := bytes.Clone(data)
		damaged[at] ^= 4
		r, err := newReader(bytes.NewReader(damaged), int64(len(damaged)))
		if err != nil {
			if !errors.Is(err, ErrJournal) {
				t.Errorf("byte %d: %v", at, err)
			}
			continue
		}
		var got Frame
		broken := len(frames) - len(r.Entries())
		for i := range r.Entries() {
			if err := r.ReadFrame(i, &got); err != nil {
				broken++
			}
		}
		if broken == 0 {
			t.Errorf("byte %d: nobody noticed", at)
		}
	}
}

func TestCreateErrors(t *testing.T) {
	path := written(t, heads[Points], frames)
	if _, err := Create(path, heads[Points]); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another journal: %v", err)
	}
	for says, change := range map[string]func(*Head){
		"frames per second": func(h *Head) { h.FrameRate = 0 },
		"box":               func(h *Head) { h.Box.Min[0] = 5 },
		"content":           func(h *Head) { h.Content = "video" },
		"no cameras":        func(h *Head) { h.Content = Images },
		"no publication":    func(h *Head) { h.Content = Encoded },
		"tiles": func(h *Head) {
			h.Content, h.Publication = Encoded, &volumetric.Publication{Name: "a", Kind: "video", Mode: "alternatives"}
		},
		"unit of depth": func(h *Head) { h.Cameras = []depth.Camera{{Width: 1, Height: 1, FX: 1, FY: 1}} },
		"17 cameras":    func(h *Head) { h.Cameras = make([]depth.Camera, 17) },
	} {
		head := heads[Points]
		change(&head)
		if _, err := Create(
			filepath.Join(t.TempDir(), "new"),
			head,
		); !errors.Is(err, ErrJournal) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("got %v, expected an error that says %q", err, says)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestReadingIsAllocationFree covers reading and writing.
func TestReadingIsAllocationFree(t *testing.T) {
	var cloud pointcloud.Cloud
	for i := range 5000 {
		cloud.Append([3]float32{float32(i), 0, 0}, [3]uint8{uint8(i)})
	}
	frame := Frame{Capture: time.Now(), Cloud: cloud}
	path := filepath.Join(t.TempDir(), "journal")
	w, err := Create(path, heads[Points])
	if err != nil {
		t.Fatal(err)
	}
	if n := allocations.PerCall(10, func() { _ = w.WriteFrame(&frame) }); n > 0 {
		t.Errorf("writing allocates %g times", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	var got Frame
	if n := allocations.PerCall(10, func() { _ = r.ReadFrame(3, &got) }); n > 1 {
		t.Errorf("reading allocates %g times", n)
	}
}

// FuzzReader reads arbitrary bytes as a journal: it is rejected, or every frame is an error or
// valid.
func FuzzReader(f *testing.F) {
	for content, frames := range map[Content][]Frame{Points: frames, Images: pictures} {
		data, err := os.ReadFile(written(f, heads[content], frames))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)-5])
	}
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := newReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if !errors.Is(err, ErrJournal) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("error without kind: %v", err)
			}
			return
		}
		var frame Frame
		var tile Tile
		for i := range min(len(r.Entries()), 100) {
			for _, err := range []error{r.ReadFrame(i, &frame), r.ReadTile(i, &tile)} {
				if err != nil && !errors.Is(err, ErrJournal) && !errors.Is(err, ErrContent) {
					t.Errorf("error without kind: %v", err)
				}
			}
		}
	})
}

// FuzzParseFrame parses arbitrary bytes behind the checksum.
func FuzzParseFrame(f *testing.F) {
	for _, list := range [][]Frame{frames, pictures} {
		for i := range list {
			f.Add(appendFrame(nil, &list[i]))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var frame Frame
		if err := parseFrame(data, &frame); err != nil {
			if !errors.Is(err, ErrJournal) {
				t.Errorf("error without kind: %v", err)
			}
			return
		}
		if len(frame.Cloud.Colors) != frame.Cloud.Len() || 15*frame.Cloud.Len() > len(data) {
			t.Errorf("%d points and %d colours of %d bytes", frame.Cloud.Len(), len(frame.Cloud.Colors), len(data))
		}
	})
}

// BenchmarkWriteFrame writes 65,000 points, the number for a person in front of a depth camera.
func BenchmarkWriteFrame(b *testing.B) {
	frame := Frame{
		Capture: time.Now(),
		Cloud:   pointcloud.Cloud{Positions: make([][3]float32, 65_000), Colors: make([][3]uint8, 65_000)},
	}
	w, err := Create(filepath.Join(b.TempDir(), "journal"), heads[Points])
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	b.SetBytes(15 * 65_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WriteFrame(&frame); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadFrame reads the same frame.
func BenchmarkReadFrame(b *testing.B) {
	frame := Frame{
		Capture: time.Now(),
		Cloud:   pointcloud.Cloud{Positions: make([][3]float32, 65_000), Colors: make([][3]uint8, 65_000)},
	}
	r := open(b, written(b, heads[Points], []Frame{frame}))
	b.SetBytes(15 * 65_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := r.ReadFrame(0, &frame); err != nil {
			b.Fatal(err)
		}
	}
}
