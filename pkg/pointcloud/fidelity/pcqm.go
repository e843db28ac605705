package fidelity

import "math"

// PCQM is the point cloud quality metric of Meynet, Nehmé, Digne and Lavoué ("PCQM: A Full-Reference Quality Metric for
// Colored 3D Point Clouds", QoMEX 2020), with the weights that the authors fitted to ratings by viewers. Each feature
// is a mean over the points of the reference, 0 without a difference.
type PCQM struct {
	// Score is the weighted sum of the features: 0 without a difference, and larger for worse clouds.
	Score float64
	// Curvature is the difference of the structure of curvature (f3), Lightness that of the lightness (f4), and Texture
	// that of the structure of lightness (f6).
	Curvature, Lightness, Texture float64
}

// The weights are those of section 4.2. The radius and the numbers of points are those of the authors' program, release
// of 2020.
const (
	curvatureWeight = 0.0057
	lightnessWeight = 0.9771
	textureWeight   = 0.0172
	// curvatureRadius is the radius of the neighbourhoods from which curvatures are computed, in longest edges of the
	// reference's bounding box. Features are computed in twice the radius, with weights of a Gaussian function whose
	// standard deviation is the radius.
	curvatureRadius = 0.004
	// projected is the number of points from which the surface is computed onto which a point is projected.
	projected = 20
)

// The constants keep the features defined in uniform neighbourhoods, section 3.3.
const (
	curvatureConstant = 1
	lightnessConstant = 0.002
	textureConstant   = 0.1
)

// pcqm compares the reference with a decoded cloud.
func (r *Reference) pcqm(other *side, matches []int32) PCQM {
	points := r.correspond(other, matches)
	features := make([][3]float64, len(points))
	inParallel(len(points), func(begin, end int) {
		s := newSearch(r.side.cloud, r.side.index)
		for i := begin; i < end; i++ {
			near := s.within(r.side.cloud.Positions[i], 2*curvatureRadius*r.peak)
			features[i] = r.features(points, i, near)
		}
	})
	var mean [3]float64
	for _, f := range features {
		for i, v := range f {
			mean[i] += v / float64(len(features))
		}
	}
	m := PCQM{Curvature: mean[0], Lightness: mean[1], Texture: mean[2]}
	m.Score = curvatureWeight*m.Curvature + lightnessWeight*m.Lightness + textureWeight*m.Texture
	return m
}

// correspondence is a point of the reference and its place on the decoded surface. Index 0 is the reference, index 1
// the decoded cloud.
type correspondence struct {
	// curvature is the absolute mean curvature times the longest edge of the reference. lightness is that of
	// LAB2000HL.
	curvature, lightness [2]float64
	// projection is the place on the decoded surface, in metres.
	projection [3]float64
}

// correspond returns the correspondences of all points of the reference: the projection onto a quadric through the
// nearest decoded points, or the nearest decoded point if the projection is farther away (section 3.1). The colour is
// that of the nearest point.
func (r *Reference) correspond(other *side, matches []int32) []correspondence {
	points := make([]correspondence, r.side.cloud.Len())
	curvatures := r.curvatures()
	inParallel(len(points), func(begin, end int) {
		s, fit := newSearch(other.cloud, other.index), new(fitter)
		for i := begin; i < end; i++ {
			p, j := r.side.cloud.Positions[i], matches[i]
			q := fit.fit(other.cloud, s.nearest(p, projected), p)
			projection, distance := q.project(p)
			if distance*distance > squareDistance(other.cloud.Positions[j], p) {
				for axis, v := range other.cloud.Positions[j] {
					projection[axis] = float64(v)
				}
			}
			points[i] = correspondence{
				curvature:  [2]float64{curvatures[i], r.curvature(s, fit, p)},
				lightness:  [2]float64{lightness(r.side.cloud.Colors[i]), lightness(other.cloud.Colors[j])},
				projection: projection,
			}
		}
	})
	return points
}

// curvature returns the absolute mean curvature of a cloud at a position, times the longest edge of the reference.
// Without points in the radius, the curvature is 0.
func (r *Reference) curvature(s *search, fit *fitter, p [3]float32) float64 {
	near := s.within(p, curvatureRadius*r.peak)
	if len(near) == 0 {
		return 0
	}
	q := fit.fit(s.cloud, near, p)
	return math.Abs(q.curvature()) * r.peak
}

// curvaturesOf returns the curvatures at all points of the reference.
func (r *Reference) curvaturesOf() []float64 {
	curvatures := make([]float64, r.side.cloud.Len())
	inParallel(len(curvatures), func(begin, end int) {
		s, fit := newSearch(r.side.cloud, r.side.index), new(fitter)
		for i := begin; i < end; i++ {
			curvatures[i] = r.curvature(s, fit, r.side.cloud.Positions[i])
		}
	})
	return curvatures
}

// features returns the features of a point from its neighbours: curvature, lightness and texture (section 3.2).
func (r *Reference) features(points []correspondence, i int, near []int) [3]float64 {
	variance := (curvatureRadius * r.peak) * (curvatureRadius * r.peak)
	weights := make([][2]float64, len(near))
	var total, curvature, light, unweighted [2]float64
	for n, j := range near {
		square := 0.0
		for axis, v := range points[j].projection {
			d := v - points[i].projection[axis]
			square += d * d
		}
		own := squareDistance(r.side.cloud.Positions[i], r.side.cloud.Positions[j])
		weights[n] = [2]float64{math.Exp(-own / 2 / variance), math.Exp(-square / 2 / variance)}
		for c, w := range weights[n] {
			total[c] += w
			curvature[c] += w * points[j].curvature[c]
			light[c] += w * points[j].lightness[c]
			unweighted[c] += points[j].lightness[c] / float64(len(near))
		}
	}
	var curvatures, texture moments
	for c := range total {
		curvature[c] /= total[c]
		light[c] /= total[c]
	}
	for n, j := range near {
		a, b := points[j].curvature[0]-curvature[0], points[j].curvature[1]-curvature[1]
		curvatures.add(a, b, weights[n][0]/total[0], weights[n][1]/total[1])
		a, b = points[j].lightness[0]-unweighted[0], points[j].lightness[1]-unweighted[1]
		texture.add(a, b, 1/float64(len(near)), 1/float64(len(near)))
	}
	deviations := math.Sqrt(curvatures.a) * math.Sqrt(curvatures.b)
	difference := light[0] - light[1]
	return [3]float64{
		min(1, math.Abs(deviations-curvatures.ab)/(deviations+curvatureConstant)),
		1 - 1/(1+lightnessConstant*difference*difference),
		1 - (texture.ab+textureConstant)/(math.Sqrt(texture.a)*math.Sqrt(texture.b)+textureConstant),
	}
}

// moments are the variances of two quantities and their covariance.
type moments struct{ a, b, ab float64 }

// add adds a pair of distances from the means. The covariance has the weights of the first quantity.
func (m *moments) add(a, b, weightA, weightB float64) {
	m.a += weightA * a * a
	m.b += weightB * b * b
	m.ab += weightA * a * b
}
