package pointcloud

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// ErrImportance reports invalid weights.
var ErrImportance = errors.New("invalid importance")

// ImportanceConfig determines the weights of points. The weight of a point is
//
//	Labels[label] · (1 + Color · edge + Shape · curvature)
//
// edge is the standard deviation of the brightness around the point divided by 64, at most 1. curvature is the
// deviation of the point's surroundings from a plane: 0 for a plane, and 1 if the surroundings extend equally in all
// directions. The surroundings are a cell of a grid and the six neighbouring cells.
type ImportanceConfig struct {
	// Color and Shape are the maximum gains at an edge of colours and at an edge of the shape.
	Color, Shape float64
	// Labels contains factors by label, for example for faces and hands. The default factor is 1.
	Labels map[uint16]float64
	// Cell is the edge of a cell in metres.
	Cell float32
}

// DefaultImportance keeps four times as many points at sharp edges as elsewhere. In a standing person of 40,000 points,
// a cell of 12 mm contains three points, and fifteen with the neighbours on a surface.
func DefaultImportance() ImportanceConfig { return ImportanceConfig{Color: 3, Shape: 3, Cell: 0.012} }

const (
	// strongEdge is the standard deviation of brightness, on a scale of 255, that counts as an
	// edge. Black next to white has 127.
	strongEdge = 64
	// weightSteps is the number of classes of weights. Consecutive classes differ by a constant
	// factor.
	weightSteps = 256
)

// Importance samples clouds so that more points are kept at places that people look at: edges of colours and shapes,
// and labelled parts. An Importance uses all processors and keeps working memory. One goroutine at a time uses an
// Importance.
type Importance struct {
	surroundings surroundings
	// weights contains the weight of each class, from the lowest to the highest weight, with a
	// constant factor between classes.
	weights [weightSteps]float64
	points  partition
}

// NewImportance returns a sampler. The error wraps ErrImportance if a gain is below 0, if a factor
// or the cell is not above 0, or if a value is not finite.
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
			return nil, fmt.Errorf(
				"%w: factor of label %d is %g, expected 0.000001 to 1000000",
				ErrImportance,
				label,
				factor,
			)
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

// Sample replaces dst's points by the given number of src's points, or by all if src does not have more. The
// probability of a point is proportional to the weight, to within one of 256 steps (1 % with the default weights), but
// no point is taken twice: if the probability would exceed 1, all points of the class are taken and the other classes
// share the rest. The points of each class are taken evenly along src. The same cloud results in the same choice. A
// cloud with a coordinate that is not finite is sampled as by Stride. src and dst must be different clouds.
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

// scale returns the factor that converts weights to probabilities whose sum is the number of
// points, which must be less than the total. Starting with the heaviest class, classes are removed
// until no probability exceeds 1.
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
