// Package raster checks the claims of the codec rgbd (vollab check rgbd): bits, errors and times beside Draco, measured
// on the same frames in the same run.
//
// A check belongs to the goroutine that calls Run.
package raster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/codec/webp"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/claim"
)

// Options configure the checks.
type Options struct {
	// Data is the folder of the test data.
	Data string
	// Frames is the number of frames of the seated person, at most 48. Compared is the number of frames whose errors
	// are measured, evenly spaced; a comparison takes about a second.
	Frames, Compared int
	// Repeats is the number of codings of each frame; times are the least.
	Repeats int
	// Switches is the number of switches of quality. Blocks is the number of times that both codecs are shown live, in
	// turn, so that the load of the machine meets both, and Block the length of each.
	Switches, Blocks int
	Block            time.Duration
}

// DefaultOptions returns the options of the claims.
func DefaultOptions() Options {
	return Options{Data: lab.TestData(), Frames: 48, Compared: 4, Repeats: 5, Switches: 1000,
		Blocks: 4, Block: 15 * time.Second}
}

// frameRate is the number of frames per second at which bitrates are stated. The recording has 24.
const frameRate = 30

// Checks returns the checks, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	return []lab.Check{
		&check{"a seated person in 4 tiles beside Draco", &bench{options: o, progress: progress}, seated, false},
		&check{"Azure Kinect with exact depths", &bench{options: o, progress: progress}, kinect, false},
		&check{"virtual cameras with noise", &bench{options: o, progress: progress}, noisy, false},
		&check{"several cameras with and without pruning", &bench{options: o, progress: progress}, pruned, false},
		&check{"random switches of quality, live", &bench{options: o, progress: progress}, switches, true},
		&check{"5 % of packets lost on each link, beside draco", &bench{options: o, progress: progress}, losses, true},
		&check{"one publisher, live, beside draco", &bench{options: o, progress: progress}, latencies, true},
		inBrowser(progress),
		&check{"views turned from the camera's, in headless Chromium", &bench{options: o, progress: progress}, turned,
			true},
	}
}

// check is one claim.
type check struct {
	title   string
	bench   *bench
	measure func(ctx context.Context, b *bench) ([]claim.Line, error)
	// live is set if the figures depend on the load of the machine.
	live bool
}

// Name implements lab.Check.
func (c *check) Name() string { return c.title }

// Run implements lab.Check. Without test data or Draco nothing is measured.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) {
	lines, err := c.measure(ctx, c.bench)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, codec.ErrUnknown) {
		return []claim.Line{claim.Skip(c.title, err.Error())}, nil
	}
	return lines, err
}

// bench is the environment of a check.
type bench struct {
	options  Options
	progress lab.Progress
}

// source returns a source of the test data.
func (b *bench) source(kind, path string) (string, error) {
	path = filepath.Join(b.options.Data, path)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("test data: %w; set %s", err, lab.TestDataVariable)
	}
	return kind + ":" + path, nil
}

// The claims. "Equal" errors are those of Draco at 11 bits, and luma that of draco+jpeg at quality 85.
const (
	seatedRate       = 8.0 // Mbit/s
	seatedBesides    = 6.2 // times fewer bits than draco at speed 10
	seatedBesideJPEG = 3.3 // times fewer bits than draco+jpeg
	halfRate         = 2.9
	halfD1           = 59
	quarterRate      = 1.0
	quarterD1        = 51
	fourTiles        = 1 // % more bits than one tile
	nineTiles        = 3
	encodeTime       = 6 // ms
	decodeTime       = 4
	webpRate         = 6.8
	webpEncodeTime   = 8
	webpDecodeTime   = 5
	kinectBits       = 2.8 // bits per point
	kinectLuma       = 38  // dB
)

// person returns frames of the recording of a seated person.
func (b *bench) person(ctx context.Context, frames int) (*film, error) {
	spec, err := b.source("rgbd", "seated-human/rgbd")
	if err != nil {
		return nil, err
	}
	return shoot(ctx, spec, capture.DefaultOptions(), frames)
}

// seated measures the recording of a seated person.
func seated(ctx context.Context, b *bench) ([]claim.Line, error) {
	film, err := b.person(ctx, b.options.Frames)
	if err != nil {
		return nil, err
	}
	b.progress.Say("  %d frames, %.0f points", len(film.frames), film.points())
	draco, err := film.measureCloud(b, "draco")
	if err != nil {
		return nil, err
	}
	colored, err := film.measureCloud(b, "draco+jpeg")
	if err != nil {
		return nil, err
	}
	full := codec.RasterParams{Step: 0.00065, ColorQuality: 80}
	best, err := film.measureRaster(b, 4, full, true)
	if err != nil {
		return nil, err
	}
	lines := []claim.Line{
		claim.Information("draco, 11 bits, speed 10", draco.rate(), "Mbit/s"),
		claim.Information("draco+jpeg, 11 bits, speed 10, quality 85", colored.rate(), "Mbit/s"),
		claim.AtMost("rgbd, 4 tiles, 0.65 mm, quality 80", best.rate(), "Mbit/s", seatedRate),
		claim.AtLeast("D1, at least that of draco", best.d1, "dB", round(draco.d1)),
		claim.AtLeast("D2, at least that of draco", best.d2, "dB", round(draco.d2)),
		claim.AtLeast("luma, at least that of draco+jpeg", best.luma, "dB", round(colored.luma)),
		claim.AtLeast("times fewer bits than draco", draco.bits/best.bits, "", seatedBesides),
		claim.AtLeast("times fewer bits than draco+jpeg", colored.bits/best.bits, "", seatedBesideJPEG),
	}
	for _, r := range []struct {
		name     string
		params   codec.RasterParams
		rate, d1 float64
	}{
		{"raster 1/2, 1.5 mm, quality 75", codec.RasterParams{Reduction: 1, Step: 0.0015, ColorQuality: 75}, halfRate,
			halfD1},
		{"raster 1/4, 3 mm, quality 75", codec.RasterParams{Reduction: 2, Step: 0.003, ColorQuality: 75}, quarterRate,
			quarterD1},
	} {
		m, err := film.measureRaster(b, 4, r.params, true)
		if err != nil {
			return lines, err
		}
		lines = append(lines, claim.AtMost(r.name, m.rate(), "Mbit/s", r.rate),
			claim.AtLeast(r.name+": D1", m.d1, "dB", r.d1))
	}
	tiles, err := film.measureTiles(b, full, best)
	if err != nil {
		return lines, err
	}
	lines = append(lines, tiles...)
	compressed, err := film.measureWebP(b, full, round(colored.luma))
	if err != nil {
		return lines, err
	}
	lines = append(lines, compressed...)
	return append(lines,
		claim.AtMost("encode a frame, one core", best.encode, "ms", encodeTime),
		claim.AtMost("decode a frame to points, one core", best.decode, "ms", decodeTime),
		claim.Information("encode a frame with draco", draco.encode, "ms"),
		claim.Information("decode a frame with draco", draco.decode, "ms"),
		claim.Information("encode a frame with draco+jpeg", colored.encode, "ms"),
		claim.Information("decode a frame with draco+jpeg", colored.decode, "ms")), nil
}

// measureTiles compares 4 and 9 tiles with one.
func (f *film) measureTiles(b *bench, params codec.RasterParams, four measured) (lines []claim.Line, err error) {
	one, err := f.measureRaster(b, 1, params, false)
	if err != nil {
		return nil, err
	}
	nine, err := f.measureRaster(b, 9, params, false)
	if err != nil {
		return nil, err
	}
	return []claim.Line{
		claim.AtMost("4 tiles instead of one", 100*(four.bits/one.bits-1), "%", fourTiles),
		claim.AtMost("9 tiles instead of one", 100*(nine.bits/one.bits-1), "%", nineTiles),
	}, nil
}

// measureWebP measures colours as WebP, whose luma must be at least that of draco+jpeg.
func (f *film) measureWebP(b *bench, params codec.RasterParams, luma float64) ([]claim.Line, error) {
	if err := webp.Available(); err != nil {
		return []claim.Line{claim.Skip("rgbd, colours as WebP", err.Error())}, nil
	}
	params.WebP = true
	m, err := f.measureRaster(b, 4, params, true)
	if err != nil {
		return nil, err
	}
	return []claim.Line{
		claim.AtMost("rgbd, colours as WebP, 4 tiles, 0.65 mm, quality 80", m.rate(), "Mbit/s", webpRate),
		claim.AtLeast("WebP: luma, at least that of draco+jpeg", m.luma, "dB", luma),
		claim.AtMost("WebP: encode a frame, one core", m.encode, "ms", webpEncodeTime),
		claim.AtMost("WebP: decode a frame to points, one core", m.decode, "ms", webpDecodeTime),
	}, nil
}

// round rounds a bound to the tenths in which it is printed.
func round(decibels float64) float64 { return math.Floor(decibels*10) / 10 }

// kinect measures a capture of an Azure Kinect, whose unit of depth is 1 mm.
func kinect(ctx context.Context, b *bench) ([]claim.Line, error) {
	spec, err := b.source("kinect", "azure-kinect/recording.mkv")
	if err != nil {
		return nil, err
	}
	options := capture.DefaultOptions()
	options.Background = depth.Background{Near: 0.2, Far: 1.5}
	film, err := shoot(ctx, spec, options, 1)
	if err != nil {
		return nil, err
	}
	colored, err := film.measureCloud(b, "draco+jpeg")
	if err != nil {
		return nil, err
	}
	m, err := film.measureRaster(b, 4, codec.RasterParams{Step: film.camera.Unit, ColorQuality: 70}, true)
	if err != nil {
		return nil, err
	}
	wrong, err := film.wrongDepths(film.camera.Unit)
	if err != nil {
		return nil, err
	}
	return []claim.Line{
		claim.Information("draco+jpeg, 11 bits, speed 10, quality 85", colored.bits, "bit/point"),
		claim.AtMost("rgbd, 4 tiles, 1 mm, quality 70", m.bits, "bit/point", kinectBits),
		claim.AtLeast("luma", m.luma, "dB", kinectLuma),
		claim.Exactly("pixels with another depth than captured", wrong, "", 0),
	}, nil
}

// wrongDepths counts the pixels whose depths do not return exactly.
func (f *film) wrongDepths(unit float64) (wrong int64, err error) {
	encoder, decoder := rgbd.Codec.NewEncoder().(codec.RasterEncoder), rgbd.Codec.NewDecoder().(codec.RasterDecoder)
	for i := range f.frames {
		from := &f.frames[i].Rasters[0]
		rects, err := rgbd.Rectangles(&f.camera, from, 4)
		if err != nil {
			return 0, err
		}
		for _, rect := range rects {
			data, points, err := encoder.EncodeRaster(nil, &f.camera, from, codec.RasterParams{Rect: rect, Step: unit,
				NoColors: true})
			if err != nil {
				return 0, err
			}
			var raster codec.Raster
			if err := decoder.DecodeRaster(&raster, data); err != nil {
				return 0, err
			}
			same := 0
			for at, d := range raster.Depths {
				x, y := raster.Rect.Min.X+at%raster.Rect.Dx(), raster.Rect.Min.Y+at/raster.Rect.Dx()
				if d != 0 && math.Round(float64(d)/unit) == float64(from.Depth[y*f.camera.Width+x]) {
					same++
				}
			}
			wrong += int64(points - same)
		}
	}
	return wrong, nil
}

// points returns the mean number of points per frame.
func (f *film) points() float64 {
	sum := 0
	for i := range f.frames {
		sum += f.frames[i].Cloud.Len()
	}
	return float64(sum) / float64(len(f.frames))
}

// appendTo appends the points of a cloud to another.
func appendTo(all, part *pointcloud.Cloud) {
	all.Positions = append(all.Positions, part.Positions...)
	all.Colors = append(all.Colors, part.Colors...)
}
