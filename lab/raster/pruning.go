package raster

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// surfacePoints is the number of points of the mesh with which unions of cameras are compared.
	surfacePoints = 200_000
	// prunedFrames is the greatest number of frames; four cameras have 100,000 points in each.
	prunedFrames = 12
)

// around returns a file of cameras with 1 mm of noise at angles in degrees around a standing person, 0 in front.
func around(angles ...float64) string {
	var cameras []string
	for i, angle := range angles {
		sin, cos := math.Sincos(angle * math.Pi / 180)
		cameras = append(cameras, fmt.Sprintf(`{"name": "camera%d", "width": 512, "height": 424, "fx": 366.6,
			"fy": 366.6, "position": [%g, 1, %g], "look_at": [0, 0.8, 0], "noise": {"white_mm": 1}}`,
			i+1, 1.7*sin, 1.7*cos))
	}
	return `{"cameras": [` + strings.Join(cameras, ",") + `]}`
}

// pruned measures two and four virtual cameras around a walking man, with and without the pixels that another camera
// sees more frontally.
func pruned(ctx context.Context, b *bench) ([]claim.Line, error) {
	b = b.once()
	surface, err := b.surface(ctx)
	if err != nil {
		return nil, err
	}
	var lines []claim.Line
	for _, c := range []struct {
		name   string
		angles []float64
	}{{"2 cameras 70° apart", []float64{-35, 35}}, {"4 cameras 90° apart", []float64{0, 90, 180, 270}}} {
		more, err := b.pruning(ctx, around(c.angles...), surface)
		if err != nil {
			return lines, err
		}
		for _, l := range more {
			l.Name = c.name + ": " + l.Name
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// surface returns the points of the mesh without cameras.
func (b *bench) surface(ctx context.Context) ([]capture.Frame, error) {
	spec, err := b.source("glb", "cesium-man/CesiumMan.glb")
	if err != nil {
		return nil, err
	}
	o := capture.DefaultOptions()
	o.Points = surfacePoints
	source, err := capture.OpenOn(&atOnce{time.Unix(0, 0)}, spec, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	frames := make([]capture.Frame, min(prunedFrames, b.options.Frames))
	for i := range frames {
		if err := source.Read(ctx, &frames[i]); err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// pruning compares one set of cameras with and without pruning: with the captured points of all cameras, and with the
// surface.
func (b *bench) pruning(ctx context.Context, rig string, surface []capture.Frame) ([]claim.Line, error) {
	params := codec.RasterParams{Step: 0.00065, ColorQuality: 80}
	var films [2]*film
	var toUnion, toSurface [2]measured
	for i := range films {
		o := capture.DefaultOptions()
		o.Prune = i == 1
		var err error
		if films[i], err = shootVirtual(ctx, b, rig, o, len(surface)); err != nil {
			return nil, err
		}
		films[i].truth = films[0].frames
		if toUnion[i], err = films[i].measureRaster(b, 4, params, true); err != nil {
			return nil, err
		}
		films[i].truth = surface
		if toSurface[i], err = films[i].measureRaster(b, 4, params, true); err != nil {
			return nil, err
		}
	}
	all, kept := &toUnion[0], &toUnion[1]
	return []claim.Line{
		claim.Information("points of all cameras", films[0].points(), ""),
		claim.Information("rgbd, 4 tiles of each camera, 0.65 mm, quality 80", all.rate(), "Mbit/s"),
		claim.Information("pixels dropped by pruning", 100*(1-films[1].points()/films[0].points()), "%"),
		claim.Information("bits saved by pruning", 100*(1-kept.frameBits/all.frameBits), "%"),
		claim.Information("D1 to the captured points, all pixels", all.d1, "dB"),
		claim.Information("D1 to the captured points, pruned", kept.d1, "dB"),
		claim.Information("D2 to the captured points, all pixels", all.d2, "dB"),
		claim.Information("D2 to the captured points, pruned", kept.d2, "dB"),
		claim.Information("D1 to the surface, change by pruning", toSurface[1].d1-toSurface[0].d1, "dB"),
		claim.Information("D2 to the surface, change by pruning", toSurface[1].d2-toSurface[0].d2, "dB"),
	}, nil
}
