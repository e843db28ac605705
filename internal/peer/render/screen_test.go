package render

import (
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// clock is a clock controlled by the test; each reading advances it by a millisecond.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func TestScreen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pictures")
	begin := time.Unix(1000, 0)
	c := &clock{now: begin}
	s, err := NewScreen(Config{Now: c.Now, Dir: dir, Every: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	cloud := wall(1000, 1, 0, [3]uint8{10, 200, 30})
	box := volumetric.BoundingBox{Min: [3]float32{-0.5, -0.5, 0}, Max: [3]float32{0.5, 0.5, 0}}
	s.Move("alice/body", Place{Position: [3]float64{0, 1, 0}})
	s.Show("alice/body", Frame{Clouds: []*pointcloud.Cloud{cloud}, Box: box, Capture: begin.Add(-40 * time.Millisecond),
		Decoded: begin.Add(-10 * time.Millisecond)})
	wait.Until(t, "the first picture", func() bool { return s.Stats().Written == 1 })
	stats := s.Stats()
	// The clock shows 1 ms at the beginning and 2 ms at the end.
	if stats.Drawn != 1 || stats.Wait.Max() != 11*time.Millisecond || stats.Draw.Max() != time.Millisecond ||
		stats.Latency.Max() != 42*time.Millisecond {
		t.Errorf("got %+v: wait %v, draw %v, latency %v", stats, stats.Wait.Max(), stats.Draw.Max(),
			stats.Latency.Max())
	}
	// The other object has no capture time, and stands elsewhere.
	s.Look(View{Position: [3]float64{0, 0, -10}})
	s.Show("bob/body", Frame{Clouds: []*pointcloud.Cloud{cloud}, Box: box, Decoded: begin})
	wait.Until(t, "the second picture", func() bool { return s.Stats().Written == 2 })
	if stats := s.Stats(); stats.Drawn != 2 || stats.Latency.Count() != 1 {
		t.Errorf("got %d frames drawn, %d with a latency", stats.Drawn, stats.Latency.Count())
	}
	s.Remove("alice/body")
	s.Close()

	if got := s.everything(); got != box {
		t.Errorf("what is left lies in %v", got)
	}
	for i, want := range []bool{true, false} {
		file, err := os.Open(filepath.Join(dir, []string{"00000000.png", "00000001.png"}[i]))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(file)
		_ = file.Close()
		if err != nil || picture.Bounds().Dx() != Width || picture.Bounds().Dy() != Height {
			t.Fatalf("picture %d: %v, %v", i, picture.Bounds(), err)
		}
		// The first picture looks at the object, the second away from both.
		if _, green, _, _ := picture.At(Width/2, Height/2).RGBA(); (green>>8 == 200) != want {
			t.Errorf("picture %d: green is %d in the middle, expected the object there: %v", i, green>>8, want)
		}
	}
}

// TestSuperseded checks that a frame that was never drawn is counted.
func TestSuperseded(t *testing.T) {
	s := &Screen{objects: make(map[string]*object), places: make(map[string]Place)}
	s.wake.L = &s.mu
	s.Show("a", Frame{})
	s.Show("a", Frame{})
	s.Show("b", Frame{})
	s.Remove("b")
	var scene scene
	if !s.next(&scene) || len(scene.shown) != 1 {
		t.Fatalf("expected one new frame, got %+v", scene)
	}
	s.Show("a", Frame{})
	if got := s.stats.Superseded; got != 2 {
		t.Errorf("%d frames superseded, expected 2", got)
	}
}

func TestGallery(t *testing.T) {
	if _, err := NewScreen(Config{Dir: "/dev/null/pictures"}); err == nil {
		t.Error("expected an error of a folder that cannot be made")
	}
	dir := t.TempDir()
	g, err := OpenGallery(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, 8, 8, 1)
	r.Draw(View{}, nil)
	// Drawing does not wait for the picture that is being written.
	spare := <-g.spare
	g.Hang(1, r)
	if g.dropped.Load() != 1 {
		t.Error("expected a picture to be dropped while another is written")
	}
	g.spare <- spare
	// A folder in the place of the file.
	if err := os.Mkdir(filepath.Join(dir, "00000002.png"), 0o777); err != nil {
		t.Fatal(err)
	}
	g.Hang(2, r)
	g.Close()
	if g.dropped.Load() != 2 || g.written.Load() != 0 {
		t.Errorf("%d written and %d dropped, expected 0 and 2", g.written.Load(), g.dropped.Load())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("expected no remains, got %v, %v", entries, err)
	}
}
