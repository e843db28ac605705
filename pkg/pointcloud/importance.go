package pointcloud

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// ErrImportance says that weights cannot be used.
var ErrImportance = errors.New("invalid importance")

// ImportanceConfig weighs points. A point's weight is
//
//	Labels[label] · (1 + Color · edge + Shape · curvature)
//
// where edge is the standard deviation of the brightness around it over 64, at most 1, and curvature is how far its surroundings are from a
// plane, 0 on one and 1 where they extend alike in all directions. Its surroundings are a cell of a grid and the six beside it.
type ImportanceConfig struct {
	// Color and Shape are what a point gains at most at an edge of colours, and at one of the shape.
	Color, Shape float64
	// Labels are factors by label, for instance of faces and hands; labels that are not named have 1.
	Labels map[uint16]float64
	// Cell is the edge of a cell in metres.
	Cell float32
}

// DefaultImportance has four times as many points at sharp edges as elsewhere. Cells of 12 mm have three points each in a standing person of 40,000,
// hence fifteen with the cells beside them on a surface.
func DefaultImportance() ImportanceConfig { return ImportanceConfig{Color: 3, Shape: 3, Cell: 0.012} }

const (
	// strongEdge is the standard deviation of brightness, of 255, that counts as an edge: black beside white has 127.
	strongEdge = 64
	// weightSteps is into how many classes weights are told, a constant factor apart.
	weightSteps = 256
)

// Importance samples clouds so that what people look at keeps more points: edges of colours and shapes, and what labels mark. It works on all
// processors and keeps its working memory; one goroutine uses it at a time.
type Importance struct {
	surroundings surroundings
	// weights are those of the classes, a factor apart that gives the lowest weight to the first and the highest to the last.
	weights [weightSteps]float64
	points  partition
}

// NewImportance makes a sampler. Gains below 0, factors and cells that are not above 0, and such as are not finite give an error around ErrImportance.
func NewImportance(config ImportanceConfig) (*Importance, error) {
	for _, gain := range []float64{config.Color, config.Shape} {
		if !(gain >= 0 && gain <= 1e6) {
			return nil, fmt.Errorf("%w: gain is %g, expected 0 to 1000000", ErrImportance, gain)
		}
	}
	if !(config.Cell > 0) || math.IsInf(float64(config.Cell), 0) {
		return nil, fmt.Errorf("%w: cell is %g m, expected more than 0", ErrImportance, config.Cell)
	}
	least, most := 1.0, 1.0
	for _, label := range slices.Sorted(maps.Keys(config.Labels)) {
		factor := config.Labels[label]
		if !(factor >= 1e-6 && factor <= 1e6) {
			return nil, fmt.Errorf("%w: factor of label %d is %g, expected 0.000001 to 1000000", ErrImportance, label, factor)
		}
		least, most = min(least, factor), max(most, factor)
	}
	most *= 1 + config.Color + config.Shape
	s := &Importance{}
	step := math.Log(most/least) / (weightSteps - 1)
	for class := range s.weights {
		s.weights[class] = least * math.Exp(step*float64(class))
	}
	s.surroundings.set(config, math.Log(least), step)
	return s, nil
}

// Sample replaces dst's points by the given number of src's, or by all where src has no more. Each point is chosen with a chance in proportion
// to its weight, within one step of the 256 into which weights are told (1 % with the default weights), but never twice: where that would
// exceed 1, all points are taken and the others share what is left. Of each weight they are taken evenly along src's sequence. The same
// cloud gives the same choice. A cloud with a coordinate that is not finite is sampled as by Stride. Both clouds must be different ones.
func (s *Importance) Sample(src, dst *Cloud, points int) {
	if points >= src.Len() || points <= 0 {
		Stride(src, dst, points)
		return
	}
	if !s.surroundings.survey(src) {
		Stride(src, dst, points)
		return
	}
	p := &s.points
	p.classify(src, weightSteps, &s.surroundings)
	scale := s.scale(p.totals[:weightSteps], points)
	var wishes [weightSteps]float64
	for class, n := range p.totals[:weightSteps] {
		wishes[class] = float64(n) * min(1, scale*s.weights[class])
	}
	share(wishes[:], points, p.quotas[:weightSteps])
	p.thin(dst)
}

// scale is the factor on weights that makes them chances which add up to a number of points, less than there are. It takes classes out from the
// heaviest on, until no other exceeds 1.
func (s *Importance) scale(totals []int, points int) float64 {
	sum := 0.0
	for class, n := range totals {
		sum += float64(n) * s.weights[class]
	}
	left := float64(points)
	for class := weightSteps - 1; class > 0; class-- {
		if s.weights[class]*left <= sum {
			break
		}
		left -= float64(totals[class])
		sum -= float64(totals[class]) * s.weights[class]
	}
	return left / sum
}
