package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/record"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// recordInto runs volpeer record and returns its summary.
func recordInto(t *testing.T, flags ...string) record.Summary {
	t.Helper()
	root := record.Command()
	root.SetArgs(append([]string{"--json"}, flags...))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var r record.Summary
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func openJournal(t *testing.T, path string) *journal.Reader {
	t.Helper()
	r, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// TestRecordPoints checks that the replayed points are the captured points in the same order.
func TestRecordPoints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points")
	summary := recordInto(t, "--source", "synthetic", "--points", "500", "--fps", "200", "--seconds", "0.3", "--output",
		path)
	if summary.Content != "points" || summary.Frames < 5 || summary.Bytes < 500*15*summary.Frames ||
		summary.Seconds <= 0 {
		t.Errorf("got %+v", summary)
	}
	reader := openJournal(t, path)
	if got := int64(len(reader.Entries())); got != summary.Frames {
		t.Fatalf("%d frames, expected %d", got, summary.Frames)
	}
	source, err := capture.Open("replay:"+path, capture.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var frame capture.Frame
	var expected journal.Frame
	for range 4 {
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		index := int(frame.Number) % len(reader.Entries())
		if err := reader.ReadFrame(index, &expected); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(frame.Cloud.Positions, expected.Cloud.Positions) ||
			!slices.Equal(frame.Cloud.Colors, expected.Cloud.Colors) ||
			!slices.Equal(frame.Cloud.Labels, expected.Cloud.Labels) {
			t.Errorf("frame %d is not frame %d of the journal", frame.Number, index)
		}
	}
}

// collector stores the frames that it receives.
type collector struct {
	mu     sync.Mutex
	frames []client.OutgoingFrame
	tiles  []int
	levels []volumetric.Quality
}

func (c *collector) Wanted(tile int, quality volumetric.Quality) bool {
	return tile != 1 || quality != 0
}
func (c *collector) GaveUp(tile int, _ volumetric.Quality) bool { return tile == 1 }

func (c *collector) WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.Data = slices.Clone(f.Data)
	c.frames, c.tiles, c.levels = append(c.frames, f), append(c.tiles, tile), append(c.levels, quality)
	return true, nil
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.frames)
}

// TestReplayEncoded checks that the recorded bytes are sent at the recorded intervals, under numbers that continue when
// the journal is repeated.
func TestReplayEncoded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "encoded")
	summary := recordInto(t, "--source", "synthetic", "--points", "300", "--fps", "100", "--seconds", "0.2", "--output",
		path,
		"--content", "encoded", "--codec", "raw", "--tiles", "2", "--qualities", "low,high")
	reader := openJournal(t, path)
	entries := reader.Entries()
	if summary.Frames != int64(len(entries)) || len(entries) < 16 || len(entries)%4 != 0 {
		t.Fatalf("%d tiles, %+v", len(entries), summary)
	}
	r, err := Open("replay:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d, err := r.Publication("again", false)
	if err != nil || d.Name != "again" || len(d.Tiles) != 2 || len(d.Qualities) != 2 || d.FrameRate != 100 ||
		d.Codec.Format != "codec=raw0" && !strings.HasPrefix(d.Codec.Format, "codec=") {
		t.Errorf("described as %+v, %v", d, err)
	}
	var c collector
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx, &c) }()
	wait.Until(t, "a loop and a half", func() bool { return c.count() > len(entries)*9/8 })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	compareReplay(t, reader, &c)
	if counts := r.Counts(); counts.Sent != int64(len(c.frames)) || counts.GivenUp < int64(len(entries)/4) ||
		counts.Saved == 0 || counts.Published < int64(len(entries)/4) || counts.Bytes == 0 {
		t.Errorf("counted %+v", counts)
	}
}

func compareReplay(t *testing.T, reader *journal.Reader, c *collector) {
	t.Helper()
	entries := reader.Entries()
	span := uint32(entries[len(entries)-1].Number - entries[0].Number + 1)
	at := 0
	var tile journal.Tile
	for i, f := range c.frames {
		for !c.Wanted(entries[at%len(entries)].Tile, entries[at%len(entries)].Quality) {
			at++
		}
		e := entries[at%len(entries)]
		if err := reader.ReadTile(at%len(entries), &tile); err != nil {
			t.Fatal(err)
		}
		loop := uint32(at / len(entries))
		if !bytes.Equal(f.Data, tile.Data) || f.Codec != tile.Codec || c.tiles[i] != e.Tile ||
			c.levels[i] != e.Quality || f.Number != uint32(e.Number-entries[0].Number)+loop*span {
			t.Fatalf("frame %d is not tile %d of the journal, in loop %d", f.Number, at%len(entries), loop)
		}
		if loop == 0 {
			// The differences of capture times are the recorded ones, to the nanosecond.
			if got, want := f.Capture.Sub(c.frames[0].Capture), e.Captured-entries[0].Captured; got != want {
				t.Fatalf("frame %d was captured after %v, expected %v", f.Number, got, want)
			}
		}
		at++
	}
}

// TestRecordImages records depth and colours and computes points from the recording, with another background.
func TestRecordImages(t *testing.T) {
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "..", "shared", "data") // four folders below the module's root
	}
	kinect := filepath.Join(root, "azure-kinect", "recording.mkv")
	if _, err := os.Stat(kinect); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", kinect)
	}
	path := filepath.Join(t.TempDir(), "images")
	if summary := recordInto(t, "--source", "kinect:"+kinect, "--seconds", "0.3", "--output", path, "--content",
		"images"); summary.Frames < 1 {
		t.Fatalf("got %+v", summary)
	}
	reader := openJournal(t, path)
	if head := reader.Head(); len(head.Cameras) != 1 || head.Cameras[0].Width != 640 {
		t.Errorf("cameras are %+v", head.Cameras)
	}
	points := func(spec string, far float64) int {
		options := capture.DefaultOptions()
		options.Background.Far = far
		source, err := capture.Open(spec, options)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		return source.Info().Points
	}
	const far = 0.6
	if direct, replayed := points("kinect:"+kinect, far), points("replay:"+path, far); direct != replayed ||
		direct < 10_000 {
		t.Errorf("up to %g m: %d points of the camera, %d of the journal", far, direct, replayed)
	}
}
