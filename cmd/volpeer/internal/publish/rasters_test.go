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
	"strings"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/production"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/watch"
	"github.com/volsfu/volsfu/pkg/capture"
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
	v := openVenue(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := slog.New(slog.DiscardHandler)
	p := &options{Options: production.DefaultOptions(), room: v.door("alice")}
	p.Source, p.Codec, p.Qualities, p.Name, p.Mode = "rgbd:"+ball(t), "rgbd", "half=1/2:1mm:75,full=1/1:1mm:80", "body",
		string(volumetric.ModeAlternatives)
	settings, err := p.check(log)
	if err != nil {
		t.Fatal(err)
	}
	source, err := capture.Open(p.Source, p.Capture)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	b, err := p.prepare(ctx, settings, source)
	if err != nil {
		t.Fatal(err)
	}
	b.console, b.log = io.Discard, log
	if len(b.description.Tiles) != 4 || len(b.description.Qualities) != 2 ||
		b.description.Qualities[1].Bitrate <= b.description.Qualities[0].Bitrate {
		t.Errorf("expected 4 tiles and 2 qualities with growing bitrates, got %+v", b.description)
	}
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
		wait.Until(t, "a decoded frame", func() bool { return len(shown(t, folder)) > 3 })
		_, _ = io.WriteString(typed, "quit\n")
		_ = typed.Close()
	})
	var out strings.Builder
	w := &watch.Options{Room: v.door("bob"), Quality: "auto", Save: folder, JSON: true, Commands: true}
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
	checkBall(t, shown(t, folder)[0])
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

// checkBall checks that the points of a file are those of the ball.
func checkBall(t *testing.T, name string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var cloud pointcloud.Cloud
	if err := pointcloud.ReadPLY(file, &cloud); err != nil {
		t.Fatal(err)
	}
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
