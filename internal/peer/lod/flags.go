package lod

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Flags has the flags that weigh points by the view.
type Flags struct {
	// Regions lists the largest fraction of points in each region of the view. Angle is the width of the view in
	// degrees. Outside is the largest fraction of the points outside of the view.
	Regions        string
	Angle, Outside float64
	// Detail is Config.Distance, Least is Config.Least.
	Detail, Least float64
}

// Add registers the flags. regions is the default of --regions.
func (s *Flags) Add(f *pflag.FlagSet, regions string) {
	field := pointcloud.DefaultFieldOfView()
	f.StringVar(&s.Regions, "regions", regions,
		"largest fraction of the points in each of several equal regions of the view, from its centre, as in "+
			List(field.Maxima)+"; empty: the view direction is ignored")
	f.Float64Var(&s.Angle, "region-angle", math.Round(field.Angle*180/math.Pi), "width of the view in degrees")
	f.Float64Var(&s.Outside, "region-outside", field.Outside, "largest fraction of the points outside of the view")
	f.Float64Var(&s.Detail, "detail-distance", 0,
		"distance in metres up to which all points are sent; beyond it, the fraction decreases with the "+
			"square of the distance; 0: the distance is ignored")
	f.Float64Var(&s.Least, "detail-least", 0.05,
		"with --detail-distance, smallest fraction of the points at any distance, 0 to 1")
}

// Field returns the regions of the view. There are none if the view direction is ignored.
func (s *Flags) Field() (field pointcloud.FieldOfView, err error) {
	if s.Regions == "" {
		return field, nil
	}
	field.Angle, field.Outside = s.Angle*math.Pi/180, s.Outside
	for _, word := range strings.Split(s.Regions, ",") {
		part, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return field, fmt.Errorf("--regions: %w: got %.32q, expected numbers", pointcloud.ErrView, s.Regions)
		}
		field.Maxima = append(field.Maxima, part)
	}
	if err := field.Validate(); err != nil {
		return field, fmt.Errorf("--regions, --region-angle, --region-outside: %w", err)
	}
	return field, nil
}

// Config returns the configuration of a sampler with the regions of field, if there are any.
func (s *Flags) Config(field pointcloud.FieldOfView) (Config, error) {
	config := Config{Distance: s.Detail, Least: s.Least}
	if len(field.Maxima) > 0 {
		config.Regions = &field
	}
	if _, err := New(config); err != nil {
		return config, fmt.Errorf("--detail-distance, --detail-least: %w", err)
	}
	return config, nil
}

// List formats numbers in the syntax of Flags.Field.
func List(numbers []float64) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strings.Join(words, ",")
}
