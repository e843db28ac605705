package ladder

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// RasterGrammar is the syntax of the qualities of a codec of rasters, for the help of a flag.
const RasterGrammar = "NAME=1/1|1/2|1/4[:STEP[:QUALITY]],… for codec rgbd: the part of the camera's raster in each " +
	"direction, the step of depths (1.5mm), and the quality of colours (1 to 100)"

// DefaultRasters are the qualities of a codec of rasters if none are given.
const DefaultRasters = "low=1/4:3mm:75,mid=1/2:1.5mm:75,high=1/1:0.65mm:80"

// Raster describes one quality of a codec of rasters: see codec.RasterParams.
type Raster struct {
	Name      string
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
	reduction := -1
	for i, part := range []string{"1/1", "1/2", "1/4"} {
		if fields[0] == part {
			reduction = i
		}
	}
	if reduction < 0 || len(fields) > 3 {
		return Raster{}, fmt.Errorf("%w: %q is %.40q, expected 1/1, 1/2 or 1/4, then perhaps :STEPmm and :QUALITY",
			ErrSyntax, name, rest)
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
