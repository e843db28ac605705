// Package rstest supports tests that use librealsense without a camera: it finds the library, feeds
// software cameras with recorded depth images of a real person, records them, and lets the library
// alone compute the points of a recording.
package rstest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
	"github.com/volsfu/volsfu/pkg/capture/rgbd"
	"github.com/volsfu/volsfu/pkg/foreign"
)

// root returns the module's folder.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
	}
	t.Fatalf("no go.mod above %s", dir)
	return ""
}

// needLoader skips the test if this program cannot open libraries.
func needLoader(t testing.TB) {
	t.Helper()
	if !foreign.Supported {
		t.Skip("skipped: built without cgo, this test cannot open librealsense")
	}
}

// LibraryFile returns the library's file, or skips the test if there is none.
func LibraryFile(t testing.TB) string {
	t.Helper()
	needLoader(t)
	path := os.Getenv("VOLSFU_REALSENSE_LIBRARY")
	if path == "" {
		path = filepath.Join(root(t), ".tools", "lib", "librealsense2.so")
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf(
			"skipped: librealsense not found at %s; make deps installs it for tests on Linux, or set "+
				"VOLSFU_REALSENSE_LIBRARY",
			path,
		)
	}
	return path
}

// Library loads the library, or skips the test if there is none.
func Library(t testing.TB) *rs2.Library {
	t.Helper()
	library, err := rs2.Load(LibraryFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return library
}

// Scene is the image sequence of a software camera.
type Scene struct {
	Camera depth.Camera
	FPS    int
	Images []depth.Image
}

// Person returns the first frames of a recording of a real person at 24 fps, 512x424, or skips the
// test if the test data are missing.
func Person(t testing.TB, frames int) Scene {
	t.Helper()
	data := os.Getenv("VOLSFU_TESTDATA")
	if data == "" {
		data = filepath.Join(root(t), "..", "shared", "data")
	}
	dir := filepath.Join(data, "seated-human", "rgbd")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", dir)
	}
	folder, err := rgbd.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	camera, err := folder.Intrinsics().Camera("123")
	if err != nil {
		t.Fatal(err)
	}
	scene := Scene{Camera: camera, FPS: int(folder.Intrinsics().FPS), Images: make([]depth.Image, frames)}
	for i := range scene.Images {
		if err := folder.LoadImage(i, &scene.Images[i]); err != nil {
			t.Fatal(err)
		}
	}
	return scene
}

// Wall returns a grey wall that fills the picture of a small camera. Every image is one millimetre
// nearer.
func Wall(frames int) Scene {
	const width, height = 64, 48
	scene := Scene{
		Camera: depth.Camera{
			Name:   "456",
			Width:  width,
			Height: height,
			FX:     60,
			FY:     60,
			CX:     31.5,
			CY:     23.5,
			Unit:   0.001,
		},
		FPS: 30,
	}
	for i := range frames {
		image := depth.Image{Depth: make([]uint16, width*height), Colors: make([][3]uint8, width*height)}
		for pixel := range image.Depth {
			image.Depth[pixel] = uint16(1500 - i)
			image.Colors[pixel] = [3]uint8{uint8(pixel % width), uint8(pixel / width), 100}
		}
		scene.Images = append(scene.Images, image)
	}
	return scene
}

// Plug makes a camera for the scene. The depth and colour cameras are at the same position, a quarter of a pixel apart:
// otherwise the library would map the corners of pixels of the same size exactly between two pixels, and rounding would
// cause gaps.
func (s Scene) Plug(t testing.TB, library *rs2.Library) *rs2.SoftwareCamera {
	t.Helper()
	c := &s.Camera
	lens := rs2.Intrinsics{
		Width: int32(c.Width), Height: int32(c.Height),
		FX: float32(c.FX), FY: float32(c.FY), PPX: float32(c.CX), PPY: float32(c.CY),
	}
	color := lens
	color.PPX += 0.25
	color.PPY += 0.25
	camera, err := library.NewSoftwareCamera(rs2.SoftwareSettings{
		Serial: c.Name, FPS: s.FPS, Depth: lens, Color: color, DepthUnit: c.Unit,
		ToColor: rs2.Extrinsics{Rotation: [9]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return camera
}

// Show feeds the camera with an image of the scene, with a time in milliseconds of the domain's
// clock. The images repeat.
func (s Scene) Show(t testing.TB, camera *rs2.SoftwareCamera, number int, stamp float64, domain rs2.Domain) {
	t.Helper()
	image := s.Images[number%len(s.Images)]
	if err := camera.Show(number+1, stamp, domain, image.Depth, image.Colors); err != nil {
		t.Fatal(err)
	}
}

// Record makes a recording of the scene. The images start at a stamp in milliseconds: 0, or a current time. The library
// assumes that software cameras started at 0 and derives their frame rate from that. The synchroniser uses this rate
// unless it is below a thousandth.
func (s Scene) Record(t testing.TB, library *rs2.Library, path string, begin float64) {
	t.Helper()
	camera := s.Plug(t, library)
	defer camera.Close()
	device, err := camera.Device()
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	recorder, err := device.Record(path)
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	queue, sensors := start(t, library, recorder)
	for i := range s.Images {
		s.Show(t, camera, i, begin+float64(i)*1000/float64(s.FPS), rs2.SystemTime)
		// The recorder writes on its own thread before it passes frames on.
		for range 2 {
			wait(t, queue).Release()
		}
	}
	stop(sensors, queue)
}

// patience is the time limit for expected events in tests.
const patience = 20 * time.Second

func wait(t testing.TB, queue *rs2.Queue) rs2.Frame {
	t.Helper()
	frame, err := queue.Wait(patience)
	if err != nil || !frame.Valid() {
		t.Fatalf("expected a frame within %v, got error %v", patience, err)
	}
	return frame
}

// start starts all sensors of a device.
func start(t testing.TB, library *rs2.Library, device *rs2.Device) (*rs2.Queue, []*rs2.Sensor) {
	t.Helper()
	queue, err := library.NewQueue(16)
	if err != nil {
		t.Fatal(err)
	}
	sensors, err := device.Sensors()
	if err != nil {
		t.Fatal(err)
	}
	for _, sensor := range sensors {
		profiles, err := sensor.Profiles()
		if err != nil {
			t.Fatal(err)
		}
		if err := sensor.Start(profiles, queue); err != nil {
			t.Fatal(err)
		}
	}
	return queue, sensors
}

func stop(sensors []*rs2.Sensor, queue *rs2.Queue) {
	for _, sensor := range sensors {
		_ = sensor.Stop()
		sensor.Close()
	}
	queue.Close()
}

// Set shows images until the library has combined two images into a set, and returns the set. Set
// starts the device and stops the device afterwards.
func Set(t testing.TB, library *rs2.Library, device *rs2.Device, show func(number int) error) rs2.Frame {
	t.Helper()
	queue, sensors := start(t, library, device)
	defer stop(sensors, queue)
	sync, err := library.NewSync()
	if err != nil {
		t.Fatal(err)
	}
	defer sync.Close()
	for number := 1; number < 100; number++ {
		if err := show(number); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := sync.Process(wait(t, queue)); err != nil {
				t.Fatal(err)
			}
		}
		for set := result(t, sync); set.Valid(); set = result(t, sync) {
			if n, err := set.Len(); err == nil && n == 2 {
				return set
			}
			set.Release()
		}
	}
	t.Fatal("the library puts no images together")
	return rs2.Frame{}
}
