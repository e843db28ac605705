package produce

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// wall returns a frame of two cameras. The first sees a wall in a part of the image, the second nothing.
func wall() (*capture.Frame, []depth.Camera) {
	camera := depth.Camera{Width: 200, Height: 130, FX: 150, FY: 150, CX: 99.5, CY: 64.5, Unit: 0.001}
	frame := &capture.Frame{Rasters: make([]depth.Image, 2)}
	m := &frame.Rasters[0]
	m.Depth, m.Colors = make([]uint16, 200*130), make([][3]uint8, 200*130)
	for y := 20; y < 120; y++ {
		for x := 40; x < 140; x++ {
			m.Depth[y*200+x] = uint16(1000 + x)
		}
	}
	return frame, []depth.Camera{camera, camera}
}

var wallBox = volumetric.BoundingBox{Min: [3]float32{-1, -1, -2}, Max: [3]float32{1, 1, 0}}

// TestRasterCutter checks that the rectangles of a camera cover the image without overlap, that the first frame
// determines them, and that the tiles together have all points within their boxes.
func TestRasterCutter(t *testing.T) {
	for _, tiles := range []int{1, 2, 4, 9} {
		frame, cameras := wall()
		c, err := newRasterCutter(Rasters{Cameras: cameras, Tiles: tiles,
			Levels: []ladder.Raster{{Name: "all", Step: 0.00065, ColorQuality: 80}}}, wallBox)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.learn(frame); err != nil {
			t.Fatal(err)
		}
		area, points := 0, 0
		for i, tile := range c.tiles {
			if tile.camera == 0 {
				area += tile.rect.Dx() * tile.rect.Dy()
			}
			for _, other := range c.tiles[:i] {
				if tile.camera == other.camera && tile.rect.Overlaps(other.rect) {
					t.Errorf("%d tiles: %v overlaps %v", tiles, tile.rect, other.rect)
				}
			}
			data, n, err := c.encode(rgbd.Codec.NewEncoder().(codec.RasterEncoder), nil, frame, i,
				c.rasters.Levels[0])
			if err != nil {
				t.Fatal(err)
			}
			points += n
			var cloud pointcloud.Cloud
			if err := rgbd.Codec.NewDecoder().Decode(&cloud, data); err != nil || cloud.Len() != n {
				t.Fatalf("tile %d: %d points, %v, want %d", i, cloud.Len(), err, n)
			}
			for _, p := range cloud.Positions {
				for axis, v := range p {
					if v < tile.box.Min[axis] || v > tile.box.Max[axis] {
						t.Fatalf("tile %d has a point at %v, outside of its box %v", i, p, tile.box)
					}
				}
			}
			if tile.camera == 1 && n > 0 {
				t.Errorf("tile %d of the camera without points has %d", i, n)
			}
		}
		if area != 200*130 || points != 100*100 || len(c.describe()) != 2*tiles {
			t.Errorf("%d tiles: %d pixels, %d points and %d described tiles", tiles, area, points, len(c.describe()))
		}
		before := c.tiles[0].rect
		frame.Rasters[0].Depth[0] = 900
		if err := c.learn(frame); err != nil || c.tiles[0].rect != before {
			t.Errorf("%d tiles: a later frame moves %v to %v, %v", tiles, before, c.tiles[0].rect, err)
		}
	}
}

func TestRasterErrors(t *testing.T) {
	_, cameras := wall()
	for name, r := range map[string]Rasters{"tiles": {Cameras: cameras, Tiles: 3}, "no cameras": {Tiles: 1},
		"cameras": {Cameras: make([]depth.Camera, depth.MaxCameras+1), Tiles: 1}} {
		if _, err := newRasterCutter(r, wallBox); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, want an error around ErrConfig", name, err)
		}
	}
	c, err := newRasterCutter(Rasters{Cameras: cameras, Tiles: 1}, wallBox)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.learn(new(capture.Frame)); !errors.Is(err, ErrConfig) {
		t.Errorf("a frame without rasters: %v, want an error around ErrConfig", err)
	}
}

func TestStepFor(t *testing.T) {
	for _, test := range [][3]float64{{0.00065, 0.0001, 0.00065}, {0.00065, 0.001, 0.001}, {0.0015, 0.001, 0.002},
		{0.0005, 0.00025, 0.0005}, {0.003, 0.001, 0.003}, {0.0045, 0.001, 0.0045}} {
		if got := stepFor(test[0], test[1]); got-test[2] > 1e-12 || test[2]-got > 1e-12 {
			t.Errorf("step %g for units of %g is %g, want %g", test[0], test[1], got, test[2])
		}
	}
}

func TestRasterLabels(t *testing.T) {
	_, cameras := wall()
	cameras[0].Name, cameras[1].Name = "left", "bad\nname"
	c, err := newRasterCutter(Rasters{Cameras: cameras, Tiles: 2}, wallBox)
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, tile := range c.describe() {
		labels = append(labels, tile.Label)
	}
	if want := []string{"camera left, rectangle 1", "camera left, rectangle 2", "camera 2, rectangle 1",
		"camera 2, rectangle 2"}; !slices.Equal(labels, want) {
		t.Errorf("labels are %q, expected %q", labels, want)
	}
}

// TestRastersByViewpoint checks that the boxes of cameras around a person lead the server's allocator to the cameras on
// the viewer's side.
func TestRastersByViewpoint(t *testing.T) {
	options := capture.DefaultOptions()
	options.Rasters, options.VirtualCameras = true, filepath.Join(t.TempDir(), "cameras.json")
	if err := os.WriteFile(options.VirtualCameras, []byte(`{"cameras": [
		{"name": "front", "width": 160, "height": 144, "field_of_view": 65, "position": [0, 1, 2],
			"look_at": [0, 0.9, 0]},
		{"name": "back", "width": 160, "height": 144, "field_of_view": 65, "position": [0, 1, -2],
			"look_at": [0, 0.9, 0]}
	]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := capture.Open("synthetic", options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	var frame capture.Frame
	if err := source.Read(t.Context(), &frame); err != nil {
		t.Fatal(err)
	}
	c, err := newRasterCutter(Rasters{Cameras: source.Info().Cameras, Tiles: 4}, source.Info().Box)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.learn(&frame); err != nil {
		t.Fatal(err)
	}
	object := allocate.Object{Mode: volumetric.ModeAlternatives}
	for _, tile := range c.describe() {
		object.Tiles = append(object.Tiles, allocate.Tile{Box: tile.Box,
			Levels: []allocate.Level{{Rate: 200_000, Detail: 0.06}, {Rate: 600_000, Detail: 0.25}, {Rate: 2_000_000,
				Detail: 1}}})
	}
	allocator, err := allocate.New(allocate.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for side, z := range map[int]float64{0: 2, 1: -2} {
		yaw := float64(side) // half a turn about y, to look at the person from behind
		result := allocator.Allocate(&allocate.Scene{Budget: 7_000_000, Objects: []allocate.Object{object},
			Viewpoint: &allocate.Viewpoint{Position: [3]float64{0, 1.5, z},
				Orientation: [4]float64{0, yaw, 0, 1 - yaw}}})
		var rates [2]volumetric.Bitrate
		for i, decision := range result.Tiles[0] {
			if q := decision.Quality(); q >= 0 {
				rates[c.tiles[i].camera] += object.Tiles[i].Levels[q].Rate
			}
		}
		if rates[side] < 2*rates[1-side] {
			t.Errorf("a viewer at z = %g gets %v of the cameras in front and behind", z, rates)
		}
	}
}

// wallSource is a source of one frame per second with the rasters of cameras. A busy machine has enough time to encode
// such a frame with any parameters.
type wallSource struct {
	frame   *capture.Frame
	cameras []depth.Camera
}

func (s wallSource) Info() capture.Info {
	return capture.Info{FrameRate: 1, Box: wallBox, Cameras: s.cameras}
}

func (s wallSource) Read(_ context.Context, frame *capture.Frame) error {
	*frame = *s.frame
	return nil
}

// TestRasterBitrates checks that qualities of rasters meet their bitrates and follow the uplink, and that a change of
// the lowest quality is the last.
func TestRasterBitrates(t *testing.T) {
	frame, cameras := wall()
	random := rand.New(rand.NewPCG(1, 2))
	for i, d := range frame.Rasters[0].Depth {
		if d != 0 {
			frame.Rasters[0].Depth[i] = d + uint16(random.IntN(5))
			frame.Rasters[0].Colors[i] = [3]uint8{uint8(i), uint8(i / 200), uint8(random.IntN(9))}
		}
	}
	levels, err := ladder.ParseRasters("low=7kbit,high=35kbit,fixed=1/2:2mm:60")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(wallSource{frame, cameras}, Config{Codec: rgbd.Codec, Mode: volumetric.ModeAlternatives, Box: wallBox,
		Rasters: &Rasters{Cameras: cameras, Tiles: 2, Levels: levels}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	_, qualities, err := p.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tuned := p.encoder.rasters.rasters.Levels
	full := slices.Clone(tuned)
	for q, rate := range []volumetric.Bitrate{7e3, 35e3} {
		if got := 4 * qualities[q].Bitrate; got > rate*103/100 || got < rate/3 {
			t.Errorf("quality %q has %v, want up to %v", qualities[q].Name, got, rate)
		}
	}
	if full[2] != levels[2] || full[1].Step == 0 || levels[1].Step != 0 {
		t.Errorf("got levels %v of %v", full, levels)
	}
	sink := &carried{newFakeSink(), 100e6}
	now := time.Now().Add(time.Hour)
	sink.rate = 24e3
	p.encoder.retune(now, sink)
	if tuned[0] != full[0] || tuned[1] == full[1] {
		t.Errorf("on an uplink of 24 kbit/s: %v, want another high quality than %v", tuned, full)
	}
	sink.rate = 100e6
	for range 4 {
		now = now.Add(time.Second)
		p.encoder.retune(now, sink)
	}
	if !slices.Equal(tuned, full) {
		t.Errorf("with enough capacity: %v, want %v", tuned, full)
	}
	// A probe shows the cost of the next choice.
	p.encoder.frame = frame
	if err := p.encoder.probe(now); err != nil || len(p.encoder.workers[0].observed) != 2 {
		t.Errorf("a probe: %d observations, %v, want one per quality with a bitrate",
			len(p.encoder.workers[0].observed), err)
	}
	if err := p.encoder.probe(now.Add(probeInterval / 2)); err != nil || len(p.encoder.workers[0].observed) != 2 {
		t.Error("a second probe within the interval")
	}
	if err := p.encoder.tune(new(capture.Frame), 30); !errors.Is(err, ErrConfig) {
		t.Errorf("no points: %v, want ErrConfig", err)
	}
}
