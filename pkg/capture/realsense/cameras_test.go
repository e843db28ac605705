package realsense

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
)

// desk is a plug for software cameras, which capture while they are plugged in.
type desk struct {
	t       *testing.T
	library *rs2.Library
	mu      sync.Mutex
	plugged map[string]*plugged
}

type plugged struct {
	camera  *rs2.SoftwareCamera
	stop    chan struct{}
	stopped sync.WaitGroup
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, library: rstest.Library(t), plugged: make(map[string]*plugged)}
	t.Cleanup(func() {
		for serial := range d.plugged {
			d.pull(serial)
		}
	})
	return d
}

// plug connects a camera that sees a wall 100 times a second. The stamps of its images are the
// current time.
func (d *desk) plug(serial string) {
	scene := rstest.Wall(1000)
	scene.Camera.Name, scene.FPS = serial, 100
	p := &plugged{camera: scene.Plug(d.t, d.library), stop: make(chan struct{})}
	p.stopped.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for number := 0; ; number++ {
			select {
			case <-ticker.C:
				scene.Show(d.t, p.camera, number, milliseconds(time.Now()), rs2.SystemTime)
			case <-p.stop:
				return
			}
		}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plugged[serial] = p
}

func (d *desk) pull(serial string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.plugged[serial]
	close(p.stop)
	p.stopped.Wait()
	p.camera.Close()
	delete(d.plugged, serial)
}

// Count implements plug.
func (d *desk) Count() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.plugged), nil
}

// Devices implements plug.
func (d *desk) Devices() ([]*rs2.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var devices []*rs2.Device
	for _, p := range d.plugged {
		device, err := p.camera.Device()
		if err != nil {
			return nil, err
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// Close implements plug.
func (d *desk) Close() {}

// impatient has short limits for detecting a lost camera.
var impatient = timeouts{
	first: 10 * time.Second,
	next:  500 * time.Millisecond,
	poll:  20 * time.Millisecond,
	retry: 100 * time.Millisecond,
}

// walls is the configuration for the cameras of desk.
func walls() Config { return Config{Width: 64, Height: 48, FPS: 100} }

func (d *desk) open(config Config) (*Cameras, error) {
	return openCameras(d.library, d, config, impatient)
}

// until reads until exactly the given cameras are in the picture.
func until(t *testing.T, c *Cameras, take *Take, shown ...bool) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 30*time.Second; {
		before := take.Number
		read(t, c, take)
		if take.Number < before {
			t.Fatalf("take %d after take %d", take.Number, before)
		}
		if now := time.Now(); take.Capture.After(now) {
			t.Fatalf("take %d is of %v later", take.Number, take.Capture.Sub(now))
		}
		got := make([]bool, len(take.Images))
		for i, image := range take.Images {
			got[i] = len(image.Depth) == 64*48 && len(image.Colors) == 64*48
		}
		if slices.Equal(got, shown) {
			return
		}
	}
	t.Fatalf("expected pictures of %v", shown)
}

// TestACameraIsLostAndFound unplugs one of two cameras and plugs it in again.
func TestACameraIsLostAndFound(t *testing.T) {
	d := newDesk(t)
	d.plug("left")
	d.plug("right")
	var said bytes.Buffer
	config := walls()
	config.Log = slog.New(slog.NewTextHandler(&said, nil))
	c, err := d.open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(c.Cameras()) != 2 || c.Cameras()[0].Name != "left" || c.Cameras()[1].Unit < 0.000999 ||
		c.Cameras()[1].Unit > 0.001001 {
		t.Fatalf("got %+v", c.Cameras())
	}
	var take Take
	until(t, c, &take, true, true)
	d.pull("left")
	until(t, c, &take, false, true)
	d.plug("left")
	until(t, c, &take, true, true)
	_ = c.Close()
	if err := c.Read(t.Context(), &take); !errors.Is(err, ErrClosed) {
		t.Errorf("reading after Close: got %v", err)
	}
	for _, word := range []string{"camera=left", "lost", "is back"} {
		if !strings.Contains(said.String(), word) {
			t.Errorf("expected the log to say %q, got %s", word, said.String())
		}
	}
}

// TestCaptureTimes compares a take's time with the stamp of its image.
func TestCaptureTimes(t *testing.T) {
	d := newDesk(t)
	d.plug("one")
	c, err := d.open(walls())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var take Take
	for i := range 20 {
		begun := time.Now()
		read(t, c, &take)
		until := time.Now()
		// Stamps are used unchanged if an image arrives within a second. A take that waited in the
		// mailbox may be older than this Read.
		if take.Capture.After(until) || take.Capture.Before(begun.Add(-2*time.Second)) {
			t.Errorf("take %d is of %v before it was read", i, until.Sub(take.Capture))
		}
		if wall, monotonic := take.Capture.Round(0).
			Sub(begun.Round(0)),
			take.Capture.Sub(
				begun,
			); (wall - monotonic).Abs() > time.Millisecond {
			t.Errorf("take %d: the wall clock and the monotonic one differ by %v", i, wall-monotonic)
		}
	}
}

// TestRecordWhileCapturing plays the recording of a capture.
func TestRecordWhileCapturing(t *testing.T) {
	d := newDesk(t)
	d.plug("one")
	config := walls()
	config.Record = filepath.Join(t.TempDir(), "take.db3")
	c, err := d.open(config)
	if err != nil {
		t.Fatal(err)
	}
	var take Take
	var seen []uint16
	for range 10 {
		read(t, c, &take)
		seen = append(seen, take.Images[0].Depth[100])
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	playing := DefaultConfig()
	playing.Library = d.library.Path()
	r := openTest(t, config.Record, 0, &leapClock{time.Now()}, playing)
	recorded := make(map[uint16]bool)
	for last := uint16(9999); ; {
		read(t, r, &take)
		if depth := take.Images[0].Depth[100]; depth < last {
			recorded[depth], last = true, depth
			continue
		}
		break // it starts again
	}
	// The last two may be waiting for partners in the library's synchroniser at the end of the
	// file.
	for _, depth := range seen[:len(seen)-2] {
		if !recorded[depth] {
			t.Errorf("depth %d was seen and not recorded", depth)
		}
	}
}

func TestFilters(t *testing.T) {
	d := newDesk(t)
	d.plug("one")
	config := walls()
	var err error
	config.Filters, err = ParseFilters(
		[]string{
			"decimation=magnitude:2",
			"spatial=alpha:0.5/delta:20/magnitude:2",
			"temporal=alpha:0.4/delta:20/holes:3",
			"holes=holes:1",
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var take Take
	for range 5 {
		read(t, c, &take)
		image := &take.Images[0]
		// A wall remains a wall. The decimated image has gaps where it was scaled to the colour
		// image's size.
		if d := image.Depth[24*64+32]; len(image.Depth) != 64*48 || d != 0 && (d < 500 || d > 1500) {
			t.Errorf("filtered wall is at %d", d)
		}
	}
}

func TestOpenCamerasErrors(t *testing.T) {
	calibration, err := depth.ParseCalibration([]byte(`cameras: {other: {position: [0, 0, 0]}}`))
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(t.TempDir(), "there.db3")
	if err := os.WriteFile(there, []byte("a recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	if _, err := d.open(walls()); !errors.Is(err, ErrNoCamera) {
		t.Errorf("without a camera: got %v", err)
	}
	d.plug("one")
	tests := []struct {
		change func(*Config)
		err    error
		says   string
	}{
		{func(c *Config) { c.Serials = []string{"one", "two"} }, ErrNoCamera, "serial number two: there is one"},
		{func(c *Config) { c.Width = 848 }, ErrStreams, "no depth of 848x48 at 100 fps; available: 64x48 at 100"},
		{func(c *Config) { c.FPS = 30 }, ErrStreams, "camera one"},
		{func(c *Config) { c.Record = filepath.Join(t.TempDir(), "no", "folder.db3") }, rs2.ErrCall, "camera one"},
		{func(c *Config) { c.Record = filepath.Join(t.TempDir(), "take.mp4") }, rs2.ErrCall, "db3"},
		{func(c *Config) { c.Record = there }, ErrConfig, there},
		{func(c *Config) { c.Calibration = calibration }, depth.ErrCalibration, `"one"`},
	}
	for i, test := range tests {
		config := walls()
		test.change(&config)
		c, err := d.open(config)
		if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("test %d: got %v, expected %v that says %q", i, err, test.err, test.says)
		}
		if err == nil {
			_ = c.Close()
		}
	}
}
