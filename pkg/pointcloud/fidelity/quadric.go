package fidelity

import (
	"math"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// terms is the number of coefficients of a quadric.
const terms = 6

// quadric is the surface z = k0·x² + k1·y² + k2·x·y + k3·x + k4·y + k5 around an origin. x, y and z are coordinates
// along the axes.
type quadric struct {
	axes [3][3]float64
	k    [terms]float64
}

// fitter fits quadrics to points. A fitter keeps the memory of the matrix, and is used by one goroutine.
type fitter struct {
	columns [terms][]float64
	z       []float64
}

// fit returns the quadric through the points of a cloud with the least squares of the distances along z. x and y are
// the two directions in which the points extend most. If the points do not determine all coefficients, the others are
// zero.
func (f *fitter) fit(cloud *pointcloud.Cloud, points []int, origin [3]float32) quadric {
	q := quadric{axes: principalAxes(covariance(cloud, points))}
	for c := range f.columns {
		f.columns[c] = f.columns[c][:0]
	}
	f.z = f.z[:0]
	for _, j := range points {
		var d, at [3]float64
		for axis, v := range cloud.Positions[j] {
			d[axis] = float64(v) - float64(origin[axis])
		}
		for axis, a := range q.axes {
			at[axis] = a[0]*d[0] + a[1]*d[1] + a[2]*d[2]
		}
		x, y, z := at[0], at[1], at[2]
		for c, v := range [terms]float64{x * x, y * y, x * y, x, y, 1} {
			f.columns[c] = append(f.columns[c], v)
		}
		f.z = append(f.z, z)
	}
	q.k = f.solve()
	return q
}

// solve returns the coefficients with the least squares, by Householder reflections with column pivoting (Golub and Van
// Loan, Matrix Computations, 5.4 and 5.5.7). The columns that are left when the rest of the matrix vanishes have the
// coefficient zero. solve overwrites the matrix.
func (f *fitter) solve() [terms]float64 {
	rows := len(f.z)
	var order [terms]int
	largest := 0.0
	for c := range order {
		order[c] = c
		largest = max(largest, squares(f.columns[c]))
	}
	const epsilon = 0x1p-52
	threshold := largest * epsilon * epsilon / float64(max(1, rows))
	var diagonal [terms]float64
	rank := 0
	for ; rank < min(rows, terms); rank++ {
		best, square := rank, -1.0
		for c := rank; c < terms; c++ {
			if s := squares(f.columns[order[c]][rank:]); s > square {
				best, square = c, s
			}
		}
		if square <= threshold*float64(rows-rank) {
			break
		}
		order[rank], order[best] = order[best], order[rank]
		v := f.columns[order[rank]][rank:]
		diagonal[rank] = -math.Copysign(math.Sqrt(square), v[0])
		v[0] -= diagonal[rank]
		norm := squares(v)
		for c := rank + 1; c < terms; c++ {
			reflect(v, norm, f.columns[order[c]][rank:])
		}
		reflect(v, norm, f.z[rank:])
	}
	var k [terms]float64
	for r := rank - 1; r >= 0; r-- {
		sum := f.z[r]
		for c := r + 1; c < rank; c++ {
			sum -= f.columns[order[c]][r] * k[order[c]]
		}
		k[order[r]] = sum / diagonal[r]
	}
	return k
}

func squares(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return sum
}

// reflect reflects x at the plane across v; norm is the square of v's length.
func reflect(v []float64, norm float64, x []float64) {
	if norm == 0 {
		return
	}
	product := 0.0
	for i, a := range v {
		product += a * x[i]
	}
	product *= 2 / norm
	for i, a := range v {
		x[i] -= product * a
	}
}

// curvature returns the mean curvature at x = y = 0, in 1/m, positive if the surface bends towards the z axis.
func (q *quadric) curvature() float64 {
	xx, yy, xy, x, y := 2*q.k[0], 2*q.k[1], q.k[2], q.k[3], q.k[4]
	return ((1+x*x)*yy + (1+y*y)*xx - 2*x*y*xy) / (2 * math.Pow(1+x*x+y*y, 1.5))
}

// normal returns the normal at x = y = 0, of length 1.
func (q *quadric) normal() [3]float64 {
	x, y := q.k[3], q.k[4]
	length := math.Sqrt(1 + x*x + y*y)
	var n [3]float64
	for axis := range n {
		n[axis] = (q.axes[2][axis] - x*q.axes[0][axis] - y*q.axes[1][axis]) / length
	}
	return n
}

// project returns the point of the surface on the z axis through the origin, and its distance from there in metres.
func (q *quadric) project(origin [3]float32) (at [3]float64, distance float64) {
	for axis := range at {
		at[axis] = float64(origin[axis]) + q.k[5]*q.axes[2][axis]
	}
	return at, math.Abs(q.k[5])
}
