package ladder

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// RasterGrammar is the syntax of the qualities of a codec of rasters, for the help of a flag.
const RasterGrammar = "NAME=1/1|1/2|1/4[:STEP[:QUALITY]],… for codec rgbd: the part of the camera's raster in each " +
	"direction, the step of depths (1.5mm), and the quality of colours (1 to 100); or a bitrate of all tiles " +
	"(3Mbit), which selects the three and follows the uplink"

// DefaultRasters are the qualities of a codec of rasters if none are given.
const DefaultRasters = "low=1/4:3mm:75,mid=1/2:1.5mm:75,high=1/1:0.65mm:80"

// Raster describes one quality of a codec of rasters: see codec.RasterParams.
type Raster struct {
	Name string
	// Rate is the largest bitrate of all tiles of the quality together, 0 if the following fields are set. With a Rate
	// they are 0 until the Tuner selects them.
	Rate      volumetric.Bitrate
	Reduction int
	// Step is in metres.
	Step         float64
	ColorQuality int
}

// rasterDefaults contains the step in metres and the colour quality by reduction.
var rasterDefaults = [codec.MaxReduction + 1]Raster{
	{Step: 0.00065, ColorQuality: 80},
	{Reduction: 1, Step: 0.0015, ColorQuality: 75},
	{Reduction: 2, Step: 0.003, ColorQuality: 75},
}

// ParseRasters parses the qualities of a codec of rasters; RasterGrammar is the syntax. Errors wrap ErrSyntax and name
// the quality.
func ParseRasters(text string) ([]Raster, error) {
	items := strings.Split(text, ",")
	if len(items) > volumetric.MaxQualities {
		return nil, fmt.Errorf("%w: got %d, expected at most %d", ErrSyntax, len(items), volumetric.MaxQualities)
	}
	seen := make(map[string]bool)
	var all []Raster
	for _, item := range items {
		r, err := parseRaster(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("%w: %q is there twice", ErrSyntax, r.Name)
		}
		seen[r.Name] = true
		all = append(all, r)
	}
	return all, nil
}

func parseRaster(item string) (Raster, error) {
	name, rest, _ := strings.Cut(item, "=")
	fields := strings.Split(rest, ":")
	if err := checkName(name); err != nil {
		return Raster{}, err
	}
	if rate, err := volumetric.ParseBitrate(rest); err == nil {
		return Raster{Name: name, Rate: rate}, nil
	}
	reduction := -1
	for i, part := range []string{"1/1", "1/2", "1/4"} {
		if fields[0] == part {
			reduction = i
		}
	}
	if reduction < 0 || len(fields) > 3 {
		return Raster{}, fmt.Errorf("%w: %q is %.40q, expected 1/1, 1/2 or 1/4, then perhaps :STEPmm and :QUALITY, or "+
			"a bitrate as in 3Mbit", ErrSyntax, name, rest)
	}
	r := rasterDefaults[reduction]
	r.Name = name
	if len(fields) > 1 {
		number, millimetres := strings.CutSuffix(fields[1], "mm")
		step, err := strconv.ParseFloat(number, 64)
		if r.Step = step / 1000; err != nil || !millimetres || !(r.Step >= codec.MinStep && r.Step <= codec.MaxStep) {
			return Raster{}, fmt.Errorf("%w: step of %q is %.32q, expected %g to %g millimetres, as in 1.5mm",
				ErrSyntax, name, fields[1], codec.MinStep*1000, float64(codec.MaxStep)*1000)
		}
	}
	if len(fields) > 2 {
		var err error
		if r.ColorQuality, err = parseNumber(name, "colour quality", fields[2], 1, 100); err != nil {
			return Raster{}, err
		}
	}
	return r, nil
}

// String returns the raster in the syntax of ParseRasters without the name.
func (r Raster) String() string {
	return fmt.Sprintf("1/%d:%gmm:%d", 1<<r.Reduction, r.Step*1000, r.ColorQuality)
}

// Params identifies the raster in package model: reduction and step take the place of the bits of a cloud's positions.
func (r Raster) Params() codec.Params {
	return codec.Params{PositionBits: int(math.Round(r.Step*1e6))*(codec.MaxReduction+1) + r.Reduction,
		ColorQuality: r.ColorQuality}
}

// rasterChoices are the rasters of qualities with a bitrate, ascending. Each takes a tenth to a half more bits than the
// one before, and is closer to the capture. The step is coarse if the colours are, so that a smaller bitrate first
// costs both, and then a half of the raster.
var rasterChoices = []Raster{
	{Reduction: 2, Step: 0.006, ColorQuality: 50},
	{Reduction: 2, Step: 0.003, ColorQuality: 75},
	{Reduction: 2, Step: 0.002, ColorQuality: 85},
	{Reduction: 1, Step: 0.004, ColorQuality: 40},
	{Reduction: 1, Step: 0.003, ColorQuality: 60},
	{Reduction: 1, Step: 0.0015, ColorQuality: 75},
	{Reduction: 1, Step: 0.001, ColorQuality: 85},
	{Step: 0.004, ColorQuality: 40},
	{Step: 0.003, ColorQuality: 50},
	{Step: 0.002, ColorQuality: 60},
	{Step: 0.0015, ColorQuality: 70},
	{Step: 0.001, ColorQuality: 75},
	{Step: 0.00065, ColorQuality: 80},
	{Step: 0.0005, ColorQuality: 90},
}

// RasterSource describes the input of a codec of rasters. It implements Finder.
type RasterSource struct {
	Codec codec.Codec
	// Tiles, FrameRate, Budget, TileOverhead and PacketOverhead are those of Source. Points is the number of pixels
	// with a depth in all tiles together.
	Tiles          int
	FrameRate      float64
	Points         int
	Budget         time.Duration
	TileOverhead   int
	PacketOverhead float64
}

// Trials returns the rungs to code before Find can be called.
func (s *RasterSource) Trials() []Rung {
	trials := make([]Rung, len(rasterChoices))
	for i, r := range rasterChoices {
		trials[i].Raster = r
	}
	return trials
}

// Finer returns the rung after a rung of Find, or false after the last. Its costs are unknown.
func (s *RasterSource) Finer(r Rung) (Rung, bool) {
	i := slices.Index(rasterChoices, r.Raster) + 1
	if i == 0 || i == len(rasterChoices) {
		return Rung{}, false
	}
	return Rung{Raster: rasterChoices[i]}, true
}

// Find implements Finder: the best raster within the bitrate and the budget, or else the smallest.
func (s *RasterSource) Find(m Model, w Wish) (best Rung, found bool) {
	for _, choice := range rasterChoices {
		r, known := s.Predict(m, w, Rung{Raster: choice})
		if known && (!found || r.Rate <= w.Target && s.InTime(r)) {
			best, found = r, true
		}
	}
	return best, found
}

// Predict implements Finder.
func (s *RasterSource) Predict(m Model, _ Wish, r Rung) (Rung, bool) {
	points := s.Points >> (2 * r.Raster.Reduction)
	p, known := m.Predict(s.Codec, r.Raster.Params(), max(1, points/s.Tiles))
	bytes := float64(p.Bytes+s.TileOverhead) * (1 + s.PacketOverhead)
	r.Rate = volumetric.Bitrate(8 * bytes * float64(s.Tiles) * s.FrameRate)
	r.Took = p.Took * time.Duration(s.Tiles)
	return r, known
}

// InTime implements Finder.
func (s *RasterSource) InTime(r Rung) bool { return s.Budget == 0 || r.Took <= s.Budget }
