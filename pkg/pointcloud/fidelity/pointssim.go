package fidelity

import "math"

// PointSSIM is the structural similarity of Alexiou and Ebrahimi ("Towards a Point Cloud Structural Similarity Metric",
// ICMEW 2020): features of the two clouds are compared at nearest points, in both directions, and the worse direction
// counts. A feature is the variance of a quantity over the 12 nearest points. A similarity is 1 without a difference
// and smaller for worse clouds. It is NaN if in one direction no two matched points both have the feature: points with
// few others near have none. The authors recommend Color.
type PointSSIM struct {
	// Geometry compares the distances to the neighbours, Normals the angles between the normals, Curvature the mean
	// curvatures, and Color the luma of Rec. ITU-R BT.709.
	Geometry, Normals, Curvature, Color float64
}

// attributes is the number of similarities in PointSSIM.
const attributes = 4

// surfaceRadius is the radius of the neighbourhoods from which normals and curvatures are computed, in longest edges of
// the reference's bounding box (the example of the authors' scripts, release of 2020).
const surfaceRadius = 0.01

// variances are the features of a point, in the order of PointSSIM. A feature that is not defined is NaN.
type variances [attributes]float64

// pointSSIM compares the features of the reference and of a decoded cloud.
func (r *Reference) pointSSIM(other *side, matches, reverse []int32) PointSSIM {
	a, b := r.variances(), other.variances(surfaceRadius*r.peak)
	forward, backward := similarity(a, b, matches), similarity(b, a, reverse)
	var worse [attributes]float64
	for i := range worse {
		worse[i] = min(forward[i], backward[i])
	}
	return PointSSIM{Geometry: worse[0], Normals: worse[1], Curvature: worse[2], Color: worse[3]}
}

// similarity returns the mean similarities of features at matched points.
func similarity(a, b []variances, match []int32) [attributes]float64 {
	var sum, count [attributes]float64
	for i, j := range match {
		for k, v := range a[i] {
			w := b[j][k]
			if math.IsNaN(v) || math.IsNaN(w) {
				continue
			}
			// The constant is the distance of 1 from the next larger number, as in the authors' scripts.
			sum[k] += 1 - math.Abs(v-w)/(max(v, w)+0x1p-52)
			count[k]++
		}
	}
	for k := range sum {
		sum[k] /= count[k]
	}
	return sum
}

// variances returns the features of all points. radius is that of the neighbourhoods for normals and curvatures, in
// metres.
func (s *side) variances(radius float64) []variances {
	n := s.cloud.Len()
	normals, curvatures, lumas := make([][3]float64, n), make([]float64, n), make([]float64, n)
	inParallel(n, func(begin, end int) {
		find, fit := newSearch(s.cloud, s.index), new(fitter)
		for i := begin; i < end; i++ {
			p := s.cloud.Positions[i]
			lumas[i] = math.Round(signals(s.cloud.Colors[i])[0])
			curvatures[i] = math.NaN()
			if near := find.within(p, radius); len(near) >= terms {
				q := fit.fit(s.cloud, near, p)
				normals[i], curvatures[i] = q.normal(), oriented(q.curvature(), q.axes[2])
			}
		}
	})
	features := make([]variances, n)
	inParallel(n, func(begin, end int) {
		find := newSearch(s.cloud, s.index)
		var values [attributes][]float64
		for i := begin; i < end; i++ {
			for k := range values {
				values[k] = values[k][:0]
			}
			near := find.nearest(s.cloud.Positions[i], neighbours)
			for rank, j := range near {
				if rank > 0 {
					distance := math.Sqrt(squareDistance(s.cloud.Positions[i], s.cloud.Positions[j]))
					values[0] = append(values[0], distance)
					values[1] = append(values[1], alignment(normals[i], normals[j]))
				}
				values[2] = append(values[2], curvatures[j])
				values[3] = append(values[3], lumas[j])
			}
			for k := range values {
				features[i][k] = variance(values[k])
			}
		}
	})
	return features
}

// oriented returns the curvature for the direction of the axis whose largest coordinate is positive: the direction in
// which an axis is found is arbitrary.
func oriented(curvature float64, axis [3]float64) float64 {
	largest := axis[0]
	for _, v := range axis[1:] {
		if math.Abs(v) > math.Abs(largest) {
			largest = v
		}
	}
	return math.Copysign(1, largest) * curvature
}

// alignment returns 1 for equal or opposite normals and 0 for normals at a right angle, linear in the angle. The result
// is NaN if a normal has no length.
func alignment(a, b [3]float64) float64 {
	cosine := math.Abs(a[0]*b[0] + a[1]*b[1] + a[2]*b[2])
	length := math.Sqrt((a[0]*a[0] + a[1]*a[1] + a[2]*a[2]) * (b[0]*b[0] + b[1]*b[1] + b[2]*b[2]))
	return 1 - 2*math.Acos(min(1, cosine/length))/math.Pi
}

// variance returns the unbiased variance: 0 for one value, NaN for none.
func variance(values []float64) float64 {
	n := float64(len(values))
	switch len(values) {
	case 0:
		return math.NaN()
	case 1:
		return 0 * values[0]
	}
	mean := 0.0
	for _, v := range values {
		mean += v / n
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum / (n - 1)
}
