package publish

import (
	"context"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/production"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/watch"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// ball writes a recording of a depth camera that sees a ball of radius 0.3 m at 1.2 m, and returns the folder.
func ball(t *testing.T) string {
	t.Helper()
	const width, height, focal = 160, 120, 120.0
	folder := t.TempDir()
	depths, colors := image.NewGray16(image.Rect(0, 0, width, height)), image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			across, down := float64(x)-width/2, float64(y)-height/2
			if r := math.Hypot(across, down) / 45; r < 1 {
				depths.SetGray16(x, y, color.Gray16{Y: uint16(1200 - 300*math.Sqrt(1-r*r))})
			}
			colors.SetRGBA(x, y, color.RGBA{R: uint8(x), G: uint8(y), B: 90, A: 255})
		}
	}
	for name, picture := range map[string]image.Image{"depth_000.png": depths, "color_000.png": colors} {
		file, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(file, picture); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	intrinsics, err := json.Marshal(map[string]any{"width": width, "height": height, "fx": focal, "fy": focal,
		"cx": width/2 + 0.5, "cy": height/2 + 0.5, "depth_unit_m": 0.001})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "intrinsics.json"), intrinsics, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestRasters publishes the rasters of a depth camera through a server. A watcher decodes points of the surface.
func TestRasters(t *testing.T) {
	p := &options{Options: production.DefaultOptions()}
	p.Source, p.Qualities = "rgbd:"+ball(t), "half=1/2:1mm:75,full=1/1:1mm:80"
	description, file := watchRasters(t, p)
	if len(description.Tiles) != 4 || len(description.Qualities) != 2 ||
		description.Qualities[1].Bitrate <= description.Qualities[0].Bitrate {
		t.Errorf("expected 4 tiles and 2 qualities with growing bitrates, got %+v", description)
	}
	checkBall(t, file)
}

// TestStanding publishes what a depth camera without a calibration sees: the ball, as high as the upper part of a
// person, has its top at the height of a seated person, above the origin, and is seen from the front. The tiles' boxes
// are there, too.
func TestStanding(t *testing.T) {
	p := &options{Options: production.DefaultOptions()}
	p.Source, p.Qualities, p.Stand = "rgbd:"+ball(t), "full=1/1:1mm:80", true
	description, file := watchRasters(t, p)
	seen := saved(t, file).Bounds()
	within := func(got, want float32) bool { return math.Abs(float64(got-want)) < 0.03 }
	if !within(seen.Max[1], 1.32) || !within(seen.Min[0]+seen.Max[0], 0) || seen.Max[2] < 0 || seen.Min[2] < -0.4 {
		t.Errorf("points in %v, expected the top at 1.32 m, the middle at 0, and a front to +z", seen)
	}
	for i, tile := range description.Tiles {
		if tile.Box.Max[1] < 0.5 || tile.Box.Max[1] > 1.5 || tile.Box.Max[2] < -0.4 {
			t.Errorf("tile %d is in %v, expected around the points in %v", i, tile.Box, seen)
		}
	}
}

// TestVirtualCameras publishes the synthetic figure as two virtual cameras see it. A watcher decodes every frame.
func TestVirtualCameras(t *testing.T) {
	p := &options{Options: production.DefaultOptions()}
	p.Source, p.Qualities, p.Tiles = "synthetic", "all=1/1:1mm:80", 2
	p.Capture.Prune, p.Capture.VirtualCameras = true, filepath.Join(t.TempDir(), "cameras.yaml")
	if err := os.WriteFile(p.Capture.VirtualCameras, []byte(`
cameras:
  - {name: front, width: 160, height: 144, field_of_view: 65, position: [0, 1.1, 1.9], look_at: [0, 0.95, 0],
     noise: {white_mm: 1, dropped_edges: 0.1, flying_pixels: 0.2}}
  - {name: back, width: 160, height: 144, field_of_view: 65, position: [0.6, 1.1, -1.8], look_at: [0, 0.95, 0],
     noise: {white_mm: 1}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	description, file := watchRasters(t, p)
	var labels []string
	for _, tile := range description.Tiles {
		labels = append(labels, tile.Label)
	}
	if want := []string{"camera front, rectangle 1", "camera front, rectangle 2", "camera back, rectangle 1",
		"camera back, rectangle 2"}; !slices.Equal(labels, want) {
		t.Errorf("tiles are %q, expected %q", labels, want)
	}
	cloud := saved(t, file)
	box, figure := cloud.Bounds(), synthetic.Box()
	for axis := range 3 {
		if box.Min[axis] < figure.Min[axis]-0.01 || box.Max[axis] > figure.Max[axis]+0.01 {
			t.Errorf("points in %v, expected %v", box, figure)
		}
	}
	// Both sides of a person of 1.7 m are there.
	if cloud.Len() < 1500 || box.Max[1]-box.Min[1] < 1.4 || box.Max[2]-box.Min[2] < 0.15 {
		t.Errorf("%d points in %v", cloud.Len(), box)
	}
}

// watchRasters publishes with codec rgbd until a watcher has saved frames of all tiles, all of which it could decode.
// It returns the description of the publication and the last saved file.
func watchRasters(t *testing.T, p *options) (volumetric.Publication, string) {
	t.Helper()
	v := openVenue(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := slog.New(slog.DiscardHandler)
	p.room, p.Codec, p.Name, p.Mode = v.enter("alice"), "rgbd", "body", string(volumetric.ModeAlternatives)
	settings, err := p.check(log)
	if err != nil {
		t.Fatal(err)
	}
	source, err := p.Open(ctx, settings.Settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	b, err := p.prepare(ctx, settings, source)
	if err != nil {
		t.Fatal(err)
	}
	b.console, b.log = io.Discard, log
	session, err := p.enter(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.run(ctx, session, 0); err != nil {
			t.Error(err)
		}
	})
	folder := t.TempDir()
	commands, typed := io.Pipe()
	running.Go(func() {
		wait.Until(t, "decoded frames", func() bool { return len(shown(t, folder)) > 5 })
		_, _ = io.WriteString(typed, "quit\n")
		_ = typed.Close()
	})
	var out strings.Builder
	w := &watch.Options{Room: v.enter("bob"), Quality: "auto", Save: folder, JSON: true, Commands: true}
	watched := w.Run(ctx, commands, &out, io.Discard, log)
	stop()
	running.Wait()
	_ = session.Close()
	b.producer.Close()
	if watched != nil {
		t.Fatal(watched)
	}
	var sum summary.Summary
	if err := json.Unmarshal([]byte(out.String()), &sum); err != nil || sum.Decoded == 0 || sum.Undecodable != 0 {
		t.Errorf("expected decoded frames only, got %v, %s", err, out.String())
	}
	files := shown(t, folder)
	return b.description, files[len(files)-1]
}

// shown returns the frames that a watcher has saved.
func shown(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.ply"))
	if err != nil {
		t.Error(err)
	}
	return files
}

// saved reads a file that a watcher has saved.
func saved(t *testing.T, name string) *pointcloud.Cloud {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	cloud := new(pointcloud.Cloud)
	if err := pointcloud.ReadPLY(file, cloud); err != nil {
		t.Fatal(err)
	}
	return cloud
}

// checkBall checks that the points of a file are those of the ball.
func checkBall(t *testing.T, name string) {
	t.Helper()
	cloud := saved(t, name)
	if cloud.Len() < 100 {
		t.Errorf("%d points were decoded, expected hundreds", cloud.Len())
	}
	for _, p := range cloud.Positions {
		z := -float64(p[2])
		r := math.Hypot(float64(p[0]), float64(p[1])) / z * 120 / 45
		// Half a step, and the mean of two pixels.
		if want := 1.2 - 0.3*math.Sqrt(max(0, 1-r*r)); r > 1.01 || r < 0.85 && math.Abs(z-want) > 0.006 {
			t.Fatalf("a point is at %v, expected a depth of %g m", p, want)
		}
	}
}
