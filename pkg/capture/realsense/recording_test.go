package realsense

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leapClock is a clock that advances only during waits.
type leapClock struct{ now time.Time }

func (c *leapClock) Now() time.Time { return c.now }

func (c *leapClock) Wait(ctx context.Context, until time.Time) error {
	if until.After(c.now) {
		c.now = until
	}
	return ctx.Err()
}

// config returns the settings for tests with the library, or skips the test.
func config(t testing.TB) Config {
	t.Helper()
	c := DefaultConfig()
	c.Library = rstest.LibraryFile(t)
	return c
}

func openTest(t *testing.T, path string, fps float64, clock Clock, config Config) *Recording {
	t.Helper()
	r, err := OpenRecording(path, fps, clock, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func read(t *testing.T, from interface {
	Read(context.Context, *Take) error
}, take *Take) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := from.Read(ctx, take); err != nil {
		t.Fatal(err)
	}
}

// untouched projects an image without removing points.
func untouched(t *testing.T, camera depth.Camera, image *depth.Image) pointcloud.Cloud {
	t.Helper()
	projector, err := depth.NewProjector(camera, depth.Options{Cleaning: depth.Cleaning{EdgeRatio: 0.02}})
	if err != nil {
		t.Fatal(err)
	}
	var cloud pointcloud.Cloud
	if err := projector.Project(image, &cloud); err != nil {
		t.Fatal(err)
	}
	return cloud
}

// same reports whether two clouds are equal except for the rounding of float32.
func same(a, b *pointcloud.Cloud) bool {
	if a.Len() != b.Len() || !slices.Equal(a.Colors, b.Colors) {
		return false
	}
	for i := range a.Positions {
		for axis := range 3 {
			if off := a.Positions[i][axis] - b.Positions[i][axis]; off > 1e-6 || off < -1e-6 {
				return false
			}
		}
	}
	return true
}

// TestPersonMatchesTheLibrary compares the points of a recorded person with those computed
// by the library alone: synchronised, aligned and projected.
func TestPersonMatchesTheLibrary(t *testing.T) {
	config, library := config(t), rstest.Library(t)
	scene := rstest.Person(t, 3)
	path := filepath.Join(t.TempDir(), "person.db3")
	scene.Record(t, library, path, milliseconds(time.Now()))
	expected := rstest.Points(t, library, path)
	if len(expected) < len(scene.Images)-1 {
		t.Fatalf("the library has %d frames of %d", len(expected), len(scene.Images))
	}
	clock := &leapClock{time.Now()}
	r := openTest(t, path, 0, clock, config)
	if r.FrameRate() != 24 || len(r.Cameras()) != 1 || r.Cameras()[0].Name != "123" || r.Cameras()[0].Width != 512 {
		t.Fatalf("got %v fps of %+v", r.FrameRate(), r.Cameras())
	}
	var take Take
	found := make(map[int]bool)
	for range expected {
		read(t, r, &take)
		cloud := untouched(t, r.Cameras()[0], &take.Images[0])
		i := slices.IndexFunc(expected, func(e pointcloud.Cloud) bool { return same(&e, &cloud) })
		if i < 0 {
			t.Fatalf("take %d of %d points is none of the library's", take.Number, cloud.Len())
		}
		if cloud.Len() < 40_000 {
			t.Errorf("take %d has %d points", take.Number, cloud.Len())
		}
		found[i] = true
	}
	// The first or last image may find no partner in time, which differs between runs.
	if len(found) < len(expected)-1 {
		t.Errorf("%d different takes, expected %d", len(found), len(expected))
	}
}

func TestRecordingLoops(t *testing.T) {
	config, library := config(t), rstest.Library(t)
	path := filepath.Join(t.TempDir(), "wall.db3")
	rstest.Wall(10).Record(t, library, path, milliseconds(time.Now()))
	for _, fps := range []float64{0, 60} {
		clock := &leapClock{time.Now()}
		r := openTest(t, path, fps, clock, config)
		interval := time.Duration(float64(time.Second) / r.FrameRate())
		var take Take
		var last time.Time
		rounds, before := 0, uint16(0)
		for i := range 35 {
			read(t, r, &take)
			seen := take.Images[0].Depth[len(take.Images[0].Depth)/2]
			if seen > before {
				rounds++
			}
			before = seen
			if take.Number != int64(i) || take.Skipped != 0 {
				t.Fatalf("take %d has number %d after %d skipped", i, take.Number, take.Skipped)
			}
			// Between rounds, an interval may be longer if the last image of the previous round
			// found no partner.
			if step := take.Capture.Sub(
				last,
			); i > 0 &&
				(step < interval-time.Millisecond || step > interval+time.Millisecond) {
				t.Errorf("at %v fps, take %d is %v after the one before", r.FrameRate(), i, step)
			}
			last = take.Capture
		}
		if rounds < 4 {
			t.Errorf("%d rounds in 35 takes of 10 images, expected 4", rounds)
		}
		clock.now = clock.now.Add(10 * interval)
		read(t, r, &take)
		if take.Number < 43 || take.Number > 45 || take.Skipped != take.Number-35 {
			t.Errorf("10 intervals late: got number %d after %d skipped", take.Number, take.Skipped)
		}
		_ = r.Close()
		if err := r.Read(t.Context(), &take); !errors.Is(err, ErrClosed) {
			t.Errorf("reading after Close: got %v", err)
		}
	}
}

// TestRecordingsOfSeveralCameras plays two cameras: one started two frames later, and one has five
// more frames.
func TestRecordingsOfSeveralCameras(t *testing.T) {
	config, library := config(t), rstest.Library(t)
	dir := t.TempDir()
	begin := milliseconds(time.Now())
	left, right := rstest.Wall(12), rstest.Wall(10)
	left.Camera.Name, right.Camera.Name = "left", "right"
	left.Record(t, library, filepath.Join(dir, "a.db3"), begin)
	right.Record(t, library, filepath.Join(dir, "b.db3"), begin+2*1000/30.0+5)
	var err error
	if config.Calibration, err = depth.ParseCalibration(
		[]byte(`cameras: {left: {position: [0, 0, 0]}, right: {position: [1, 2, 3]}}`),
	); err != nil {
		t.Fatal(err)
	}
	r := openTest(t, dir, 0, &leapClock{time.Now()}, config)
	if len(r.Cameras()) != 2 || r.Cameras()[1].Pose.Translation != [3]float64{1, 2, 3} {
		t.Fatalf("got %+v", r.Cameras())
	}
	var take Take
	for i := range 30 {
		read(t, r, &take)
		a, b := take.Images[0].Depth[1000], take.Images[1].Depth[1000]
		if b != a+2 {
			t.Fatalf("take %d shows depths %d and %d, which were not captured together", i, a, b)
		}
	}
	config.Serials = []string{"right"}
	if r := openTest(
		t,
		dir,
		0,
		&leapClock{time.Now()},
		config,
	); len(r.Cameras()) != 1 ||
		r.Cameras()[0].Name != "right" {
		t.Errorf("asked for one camera, got %+v", r.Cameras())
	}
}

func TestUnusableRecordings(t *testing.T) {
	config, library := config(t), rstest.Library(t)
	dir := t.TempDir()
	good := filepath.Join(dir, "wall.db3")
	rstest.Wall(4).Record(t, library, good, 0)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	paths := []string{
		filepath.Join(dir, "none.db3"), empty, dir + "/wall.db3/x",
		file("nothing.db3", nil), file("text.db3", []byte("no recording")), file("text.bag", []byte("no recording")),
		file("header.db3", whole[:100]), file("half.db3", whole[:len(whole)/2]), file("torn.db3", whole[:len(whole)-1]),
	}
	for _, path := range paths {
		r, err := OpenRecording(path, 0, &leapClock{time.Now()}, config)
		if !errors.Is(err, ErrRecording) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, expected %v that names it", filepath.Base(path), err, ErrRecording)
		}
		if r != nil {
			_ = r.Close()
		}
	}
	config.Calibration, err = depth.ParseCalibration([]byte(`cameras: {other: {position: [0, 0, 0]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRecording(good, 0, &leapClock{time.Now()}, config); !errors.Is(err, depth.ErrCalibration) {
		t.Errorf("camera without a place: got %v", err)
	}
}
