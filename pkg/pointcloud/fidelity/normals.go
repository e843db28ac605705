package fidelity

import (
	"math"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// neighbours is the number of points from which a normal is computed, including the point itself:
// the usual number in MPEG's normal estimation.
const neighbours = 12

// estimate returns the surface normal at each point: the direction in which the neighbours extend least (Hoppe et al.
// 1992). A normal has length 1 and either sign. If the neighbours are on a line or coincide, the normal is any
// direction across.
func estimate(cloud *pointcloud.Cloud, index *pointcloud.Index) [][3]float64 {
	normals := make([][3]float64, cloud.Len())
	inParallel(len(normals), func(begin, end int) {
		s := newSearch(cloud, index)
		for i := begin; i < end; i++ {
			near := s.nearest(cloud.Positions[i], neighbours)
			normals[i] = principalAxes(covariance(cloud, near))[2]
		}
	})
	return normals
}

// covariance returns the sum of the outer products of the points' distances from their mean.
func covariance(cloud *pointcloud.Cloud, points []int) [3][3]float64 {
	var mean [3]float64
	for _, j := range points {
		for axis, v := range cloud.Positions[j] {
			mean[axis] += float64(v) / float64(len(points))
		}
	}
	var c [3][3]float64
	for _, j := range points {
		var d [3]float64
		for axis, v := range cloud.Positions[j] {
			d[axis] = float64(v) - mean[axis]
		}
		for a := range 3 {
			for b := range 3 {
				c[a][b] += d[a] * d[b]
			}
		}
	}
	return c
}

// principalAxes returns the eigenvectors of a symmetric matrix in the order of decreasing eigenvalues, by Jacobi
// rotations (Golub and Van Loan, Matrix Computations, 8.5). For a matrix of three rows, six sweeps leave only rounding
// errors.
func principalAxes(c [3][3]float64) [3][3]float64 {
	vectors := [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}} // in columns
	for range 6 {
		for p := range 2 {
			for q := p + 1; q < 3; q++ {
				if c[p][q] != 0 {
					rotate(&c, &vectors, p, q)
				}
			}
		}
	}
	smallest := 0
	for axis := 1; axis < 3; axis++ {
		if c[axis][axis] < c[smallest][smallest] {
			smallest = axis
		}
	}
	first, second := (smallest+1)%3, (smallest+2)%3
	if c[first][first] < c[second][second] {
		first, second = second, first
	}
	var axes [3][3]float64
	for i, column := range [3]int{first, second, smallest} {
		axes[i] = [3]float64{vectors[0][column], vectors[1][column], vectors[2][column]}
	}
	return axes
}

// rotate makes one off-diagonal element of the matrix zero.
func rotate(c, vectors *[3][3]float64, p, q int) {
	theta := (c[q][q] - c[p][p]) / (2 * c[p][q])
	t := 1 / (math.Abs(theta) + math.Hypot(theta, 1))
	if theta < 0 {
		t = -t
	}
	cos := 1 / math.Hypot(t, 1)
	sin := t * cos
	for k := range 3 {
		c[k][p], c[k][q] = cos*c[k][p]-sin*c[k][q], sin*c[k][p]+cos*c[k][q]
	}
	for k := range 3 {
		c[p][k], c[q][k] = cos*c[p][k]-sin*c[q][k], sin*c[p][k]+cos*c[q][k]
	}
	for k := range 3 {
		vectors[k][p], vectors[k][q] = cos*vectors[k][p]-sin*vectors[k][q], sin*vectors[k][p]+cos*vectors[k][q]
	}
}

// inherit returns the normals of the decoded cloud from the reference, as pc_error does: the mean
// of the normals of the points for which the decoded point is the nearest, or else the normal of
// the decoded point's nearest point. Signs are arbitrary, so that each normal is added in the
// direction of the first.
func inherit(reference, decoded *side, matches, reverse []int32) [][3]float64 {
	normals := make([][3]float64, decoded.cloud.Len())
	for i, j := range matches {
		add(&normals[j], reference.normals[i])
	}
	for j := range normals {
		n := normals[j]
		length := math.Sqrt(n[0]*n[0] + n[1]*n[1] + n[2]*n[2])
		if length == 0 {
			normals[j] = reference.normals[reverse[j]]
			continue
		}
		for axis := range n {
			normals[j][axis] /= length
		}
	}
	return normals
}

func add(sum *[3]float64, n [3]float64) {
	sign := 1.0
	if sum[0]*n[0]+sum[1]*n[1]+sum[2]*n[2] < 0 {
		sign = -1
	}
	for axis := range n {
		sum[axis] += sign * n[axis]
	}
}
