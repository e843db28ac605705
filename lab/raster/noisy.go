package raster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
)

// noisyLens is the camera of the measurements with noise: the raster of the seated person's recording in front of the
// upper body of a walking man. %g is the standard deviation of depths in millimetres.
const noisyLens = `{"seed": 1, "cameras": [{"width": 512, "height": 424, "fx": 366.6, "fy": 366.6,
	"position": [0, 1.15, 0.95], "look_at": [0, 1.1, 0], "noise": {"white_mm": %g}}]}`

// upperBody limits the points to the body above the hips.
var upperBody = volumetric.BoundingBox{Min: [3]float32{-1, 0.72, -1}, Max: [3]float32{1, 2, 0.8}}

// shootVirtual reads the first frames of a mesh in front of virtual cameras.
func shootVirtual(ctx context.Context, b *bench, rig string, options capture.Options, frames int) (*film, error) {
	spec, err := b.source("glb", "cesium-man/CesiumMan.glb")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "cameras")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	options.VirtualCameras = filepath.Join(folder, "cameras.json")
	if err := os.WriteFile(options.VirtualCameras, []byte(rig), 0o600); err != nil {
		return nil, err
	}
	return shoot(ctx, spec, options, frames)
}

// once returns the environment of a check that states no times.
func (b *bench) once() *bench {
	c := *b
	c.options.Repeats = 1
	return &c
}

// The claims. The parameters are the coarsest with errors not above those of draco+jpeg at 11 bits and quality 85, with
// a step of whole units of the camera.
const (
	noisyStep    = 0.0004
	noisyQuality = 70
)

// noisyBesides contains, by noise in millimetres, how many times fewer bits rgbd takes than draco+jpeg.
var noisyBesides = []struct{ noise, least float64 }{{1, 2.6}, {2, 2.3}}

// noisy measures virtual cameras with white noise. Errors are stated twice: to the captured points, where a codec has
// to reproduce the noise, and to the points of the same camera without noise.
func noisy(ctx context.Context, b *bench) ([]claim.Line, error) {
	b = b.once()
	o := capture.DefaultOptions()
	o.Background = depth.Background{Box: upperBody}
	truth, err := shootVirtual(ctx, b, fmt.Sprintf(noisyLens, 0.0), o, b.options.Frames)
	if err != nil {
		return nil, err
	}
	var lines []claim.Line
	for _, c := range noisyBesides {
		film, err := shootVirtual(ctx, b, fmt.Sprintf(noisyLens, c.noise), o, b.options.Frames)
		if err != nil {
			return lines, err
		}
		b.progress.Say("  noise of %g mm: %d frames, %.0f points", c.noise, len(film.frames), film.points())
		name := func(text string) string { return fmt.Sprintf("noise of %g mm: %s", c.noise, text) }
		fine := codec.RasterParams{Step: noisyStep, ColorQuality: noisyQuality}
		coarse := codec.RasterParams{Step: c.noise / 1000, ColorQuality: noisyQuality}
		for _, against := range []struct {
			name  string
			truth []capture.Frame
		}{{"to the captured points", nil}, {"to the points without noise", truth.frames}} {
			film.truth = against.truth
			draco, err := film.measureCloud(b, "draco+jpeg")
			if err != nil {
				return lines, err
			}
			m, err := film.measureRaster(b, 4, fine, true)
			if err != nil {
				return lines, err
			}
			if against.truth == nil {
				lines = append(lines,
					claim.Information(name("draco+jpeg, 11 bits, speed 10, quality 85"), draco.bits, "bit/point"),
					claim.Information(name("rgbd, 4 tiles, 0.4 mm, quality 70"), m.bits, "bit/point"),
					claim.AtLeast(name("times fewer bits than draco+jpeg"), draco.bits/m.bits, "", c.least))
			}
			lines = append(lines,
				claim.AtLeast(name("D1 "+against.name+", at least that of draco"), m.d1, "dB", round(draco.d1)),
				claim.AtLeast(name("D2 "+against.name+", at least that of draco"), m.d2, "dB", round(draco.d2)),
				claim.AtLeast(name("luma "+against.name+", at least that of draco+jpeg"), m.luma, "dB",
					round(draco.luma)))
			if against.truth == nil {
				continue
			}
			if m, err = film.measureRaster(b, 4, coarse, true); err != nil {
				return lines, err
			}
			lines = append(lines,
				claim.Information(name("step as large as the noise: times fewer bits than draco+jpeg"),
					draco.bits/m.bits, ""),
				claim.Information(name("the same: D2 "+against.name+" beside draco"), m.d2-draco.d2, "dB"))
		}
	}
	return lines, nil
}
