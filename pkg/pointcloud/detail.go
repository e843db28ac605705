package pointcloud

import (
	"errors"
	"fmt"
	"math"
)

// ErrDetail reports an invalid level of detail.
var ErrDetail = errors.New("invalid level of detail")

// LevelOfDetail reduces a cloud by the distance from the viewer. At twice the distance, points are twice as close
// together in the image in both directions, so that a quarter of the points fills as many pixels. Up to a distance all
// points are kept; beyond it the share falls with the square of the distance. LevelOfDetail uses all processors and
// keeps working memory. One goroutine at a time uses a LevelOfDetail.
type LevelOfDetail struct {
	reach  distanceRange
	points partition
}

// distanceRange assigns kept points to class 0 and the others to class 1.
type distanceRange struct {
	eye [3]float32
	// full is the square of the distance up to which all points are kept, in m². least is the
	// smallest share, in units of 2^-32.
	full  float32
	least uint32
}

// NewLevelOfDetail returns a sampler that keeps all points up to the distance full in metres, the share
// (full/distance)² beyond that distance, and at least the share least at any distance. A cloud with points s metres
// apart fills every pixel of a display with p pixels per radian up to the distance s·p. The error wraps ErrDetail if
// the distance is not finite and above zero, or if the share is outside of 0 to 1.
func NewLevelOfDetail(full, least float32) (*LevelOfDetail, error) {
	if !(full > 0) || math.IsInf(float64(full), 0) || !(least >= 0 && least <= 1) {
		return nil, fmt.Errorf(
			"%w: all points up to %g m and at least the share %g, expected a distance above 0 and a share of 0 to 1",
			ErrDetail,
			full,
			least,
		)
	}
	share := uint32(min(float64(least)*(1<<32), math.MaxUint32))
	return &LevelOfDetail{reach: distanceRange{full: full * full, least: share}}, nil
}

// Share returns the share of the points that is kept at a distance in metres.
func (l *LevelOfDetail) Share(distance float32) float64 {
	return max(min(1, float64(l.reach.full)/(float64(distance)*float64(distance))), float64(l.reach.least)/(1<<32))
}

// Sample replaces dst's points by the points of src that are kept for an eye at a position in the cloud's coordinates,
// and returns the number of kept points. The index of a point in src determines the rank: points kept at one distance
// are also kept at any smaller distance, and a sequence that does not change between frames does not flicker. The order
// of src should be independent of positions, as in captures. Then the share of any part of the object deviates no more
// than in a random choice: by at most the square root of its number of points (two standard deviations). src and dst
// must be different clouds.
func (l *LevelOfDetail) Sample(src, dst *Cloud, eye [3]float32) int {
	l.reach.eye = eye
	p := &l.points
	p.classify(src, 2, &l.reach)
	p.quotas[0], p.quotas[1] = p.totals[0], 0
	p.thin(dst)
	return dst.Len()
}

// Assign implements assigner. The ranks of points are multiples of the golden ratio modulo 1, which
// fill any interval evenly (Weyl 1916).
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
