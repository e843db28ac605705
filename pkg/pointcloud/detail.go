package pointcloud

import (
	"errors"
	"fmt"
	"math"
)

// ErrDetail says that a level of detail is not one.
var ErrDetail = errors.New("invalid level of detail")

// LevelOfDetail thins out a cloud by the distance from which it is seen. Points twice as far away are twice as close together in the picture in
// both directions, so that a quarter of them fills as many pixels: up to a distance all points are kept, beyond it the share falls with the
// square. It works on all processors and keeps its working memory; one goroutine uses it at a time.
type LevelOfDetail struct {
	reach  distanceRange
	points partition
}

// distanceRange tells points that are kept (class 0) from others (class 1).
type distanceRange struct {
	eye [3]float32
	// full is the square of the distance up to which all are kept, in m²; least the smallest share, in 2^-32.
	full  float32
	least uint32
}

// NewLevelOfDetail makes a sampler that keeps all points up to the distance full in metres, (full/distance)² of those beyond, and at least the
// share least of any. A cloud whose points are s metres apart, on a display with p pixels per radian, fills every pixel up to the distance
// s·p. Distances that are not above zero and finite, and shares beyond 0 to 1, give an error around ErrDetail.
func NewLevelOfDetail(full, least float32) (*LevelOfDetail, error) {
	if !(full > 0) || math.IsInf(float64(full), 0) || !(least >= 0 && least <= 1) {
		return nil, fmt.Errorf("%w: all points up to %g m and at least the share %g, expected a distance above 0 and a share of 0 to 1", ErrDetail, full, least)
	}
	share := uint32(min(float64(least)*(1<<32), math.MaxUint32))
	return &LevelOfDetail{reach: distanceRange{full: full * full, least: share}}, nil
}

// Share is the part of the points that is kept at a distance in metres.
func (l *LevelOfDetail) Share(distance float32) float64 {
	return max(min(1, float64(l.reach.full)/(float64(distance)*float64(distance))), float64(l.reach.least)/(1<<32))
}

// Sample replaces dst's points by those of src that are worth showing to an eye at a position in the cloud's coordinates, and returns how many
// they are. Which point goes first is a matter of its place in src's sequence: those that are kept at one distance are among those kept
// at any smaller one, and a sequence that stays the same from frame to frame does not flicker. Its order should say nothing about places,
// as that of captures does; then what is kept of any part of the object deviates from its share as little as a random choice, by the
// square root of its number of points at most (two standard deviations). Both clouds must be different ones.
func (l *LevelOfDetail) Sample(src, dst *Cloud, eye [3]float32) int {
	l.reach.eye = eye
	p := &l.points
	p.classify(src, 2, &l.reach)
	p.quotas[0], p.quotas[1] = p.totals[0], 0
	p.thin(dst)
	return dst.Len()
}

// Assign implements assigner. The ranks of points are multiples of the golden ratio modulo 1, which fill any interval evenly (Weyl 1916).
func (r *distanceRange) Assign(src *Cloud, begin int, into []uint8) {
	for i, p := range src.Positions[begin : begin+len(into)] {
		rank := uint32(begin+i) * 0x9e3779b9
		drop := uint8(1)
		if rank < r.least || float32(rank)*(1.0/(1<<32))*squareDistance(p, r.eye) < r.full {
			drop = 0
		}
		into[i] = drop
	}
}
