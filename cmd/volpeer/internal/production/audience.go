package production

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/internal/peer/lod"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/signal"
)

// audience is the common position of all viewers of an object that is sent once for all viewers.
type audience struct {
	detail lod.Config
	place  [3]float32
}

// errAudience is returned if --audience is given without a flag that uses the audience, or the reverse.
var errAudience = errors.New("expected --audience together with --regions, --detail-distance or both")

// onlookers parses the flags of the audience. onlookers returns nil if all points have the same weight.
func (o *Options) onlookers() (*audience, error) {
	field, err := o.Detail.Field()
	if err != nil {
		return nil, err
	}
	config, err := o.Detail.Config(field)
	switch {
	case err != nil:
		return nil, err
	case config.Reduces() != (o.Audience != ""):
		return nil, errAudience
	case o.Audience == "":
		return nil, nil
	}
	place, err := parsePlace(o.Audience)
	if err != nil {
		return nil, fmt.Errorf("--audience: %w", err)
	}
	return &audience{config, place}, nil
}

// before wraps a source, so that each cloud has only the points that lod keeps for the audience. If that fails, the
// source is closed.
func (a *audience) before(source capture.Source) (capture.Source, error) {
	thinned, err := lod.NewSource(source, a.detail, a.place)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	return thinned, nil
}

// errPlace has the syntax of positions.
var errPlace = errors.New("expected X,Y,Z in metres")

// parsePlace parses a position.
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
