package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/worth"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
)

// seeing are the flags that say what points are worth to whoever looks at them.
type seeing struct {
	regions        string
	angle, outside float64
	detail, least  float64
}

// add adds them. regions is what is said of the view where nobody says anything.
func (s *seeing) add(f *pflag.FlagSet, regions string) {
	field := pointcloud.DefaultFieldOfView()
	f.StringVar(&s.regions, "regions", regions, "largest part of the points in each of as many equal regions of the view, from its middle, as in "+
		list(field.Maxima)+"; empty: the gaze does not matter")
	f.Float64Var(&s.angle, "region-angle", math.Round(field.Angle*180/math.Pi), "width of the view in degrees")
	f.Float64Var(&s.outside, "region-outside", field.Outside, "largest part of the points out of view")
	f.Float64Var(&s.detail, "detail-distance", 0, "distance in metres up to which all points are worth sending; of those farther away the share falls with the square; 0: the distance does not matter")
	f.Float64Var(&s.least, "detail-least", 0.05, "with --detail-distance, least part of the points at any distance, 0 to 1")
}

// field is the regions of the view; none where the gaze does not matter.
func (s *seeing) field() (field pointcloud.FieldOfView, err error) {
	if s.regions == "" {
		return field, nil
	}
	field.Angle, field.Outside = s.angle*math.Pi/180, s.outside
	for _, word := range strings.Split(s.regions, ",") {
		part, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return field, fmt.Errorf("--regions: %w: got %.32q, expected numbers", pointcloud.ErrView, s.regions)
		}
		field.Maxima = append(field.Maxima, part)
	}
	if err := field.Validate(); err != nil {
		return field, fmt.Errorf("--regions, --region-angle, --region-outside: %w", err)
	}
	return field, nil
}

// worth is what points are worth one by one, in the regions of a field if there are any.
func (s *seeing) worth(field pointcloud.FieldOfView) (worth.Config, error) {
	config := worth.Config{Distance: s.detail, Least: s.least}
	if len(field.Maxima) > 0 {
		config.Regions = &field
	}
	if _, err := worth.New(config); err != nil {
		return config, fmt.Errorf("--detail-distance, --detail-least: %w", err)
	}
	return config, nil
}

// audience is who looks at an object that many are sent, all from one place.
type audience struct {
	worth worth.Config
	place [3]float32
}

// errAudience says which flags go together.
var errAudience = errors.New("expected --audience together with --regions, --detail-distance or both")

// onlookers reads who looks at what is published; nil where all points count alike.
func (p *publication) onlookers() (*audience, error) {
	field, err := p.seeing.field()
	if err != nil {
		return nil, err
	}
	config, err := p.seeing.worth(field)
	switch {
	case err != nil:
		return nil, err
	case config.Matters() != (p.audience != ""):
		return nil, errAudience
	case p.audience == "":
		return nil, nil
	}
	place, err := parsePlace(p.audience)
	if err != nil {
		return nil, fmt.Errorf("--audience: %w", err)
	}
	return &audience{config, place}, nil
}

// before is a source as it is worth sending to the audience. Where that fails the source is closed.
func (a *audience) before(source capture.Source) (capture.Source, error) {
	thinned, err := worth.NewSource(source, a.worth, a.place)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	return thinned, nil
}

// errPlace says how places are written.
var errPlace = errors.New("expected X,Y,Z in metres")

// parsePlace reads a place.
func parsePlace(text string) (place [3]float32, err error) {
	words := strings.Split(text, ",")
	if len(words) != len(place) {
		return place, fmt.Errorf("%w, got %.32q", errPlace, text)
	}
	for i, word := range words {
		number, err := strconv.ParseFloat(strings.TrimSpace(word), 32)
		if err != nil || !(math.Abs(number) <= signal.MaxCoordinate) {
			return place, fmt.Errorf("%w, got %.32q", errPlace, text)
		}
		place[i] = float32(number)
	}
	return place, nil
}

// list writes numbers as they are read.
func list(numbers []float64) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strings.Join(words, ",")
}
