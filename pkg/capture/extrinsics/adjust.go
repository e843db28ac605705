package extrinsics

import (
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// motionValues is the number of values of a small motion: a rotation vector and a translation.
const motionValues = 6

// Steps of the adjustment (K. Levenberg, 1944; D. Marquardt, 1963).
const (
	mostSteps     = 60
	firstDamping  = 1e-3
	mostDamping   = 1e9
	leastProgress = 1e-9 // share of the sum of squares
	// robust is the distance in pixels from which a corner counts less (P. Huber, "Robust estimation of a location
	// parameter", 1964).
	robust = 1.0
)

// problem is a sum of squares of distances over small motions.
type problem interface {
	// size returns the number of values.
	size() int
	// add adds the normal equations to the matrix and vector, if they are not nil, and returns the sum.
	add(matrix [][]float64, vector []float64) float64
	// move applies changes and returns a function that takes them back.
	move(changes []float64) (undo func())
}

// minimise changes a problem to its least sum nearby.
func minimise(p problem) {
	n := p.size()
	matrix, vector := newMatrix(n), make([]float64, n)
	damping := firstDamping
	sum := p.add(matrix, vector)
	for range mostSteps {
		damped := newMatrix(n)
		for i := range damped {
			copy(damped[i], matrix[i])
			damped[i][i] += damping*matrix[i][i] + 1e-12
		}
		changes := make([]float64, n)
		for i, v := range vector {
			changes[i] = -v
		}
		if !factor(damped) {
			damping *= 10
			continue
		}
		substitute(damped, changes)
		undo := p.move(changes)
		next := p.add(nil, nil)
		if !(next < sum) {
			undo()
			if damping *= 10; damping > mostDamping {
				return
			}
			continue
		}
		progress := sum - next
		damping = max(damping/10, 1e-12)
		for i := range matrix {
			clear(matrix[i])
		}
		clear(vector)
		sum = p.add(matrix, vector)
		if progress < leastProgress*sum {
			return
		}
	}
}

func newMatrix(n int) [][]float64 {
	rows := make([][]float64, n)
	values := make([]float64, n*n)
	for i := range rows {
		rows[i] = values[i*n:][:n]
	}
	return rows
}

// factor replaces the lower half of a symmetric matrix by its Cholesky factor. It returns false if the matrix is not
// positive definite.
func factor(m [][]float64) bool {
	for j := range m {
		for k := range j {
			m[j][j] -= m[j][k] * m[j][k]
		}
		if !(m[j][j] > 0) {
			return false
		}
		m[j][j] = math.Sqrt(m[j][j])
		for i := j + 1; i < len(m); i++ {
			for k := range j {
				m[i][j] -= m[i][k] * m[j][k]
			}
			m[i][j] /= m[j][j]
		}
	}
	return true
}

// substitute replaces a vector by the solution of the equations with the factored matrix.
func substitute(m [][]float64, v []float64) {
	for i := range m {
		for k := range i {
			v[i] -= m[i][k] * v[k]
		}
		v[i] /= m[i][i]
	}
	for i := len(m) - 1; i >= 0; i-- {
		for k := i + 1; k < len(m); k++ {
			v[i] -= m[k][i] * v[k]
		}
		v[i] /= m[i][i]
	}
}

// moved returns a motion followed by a small motion.
func moved(p depth.Pose, change []float64) depth.Pose {
	w := [3]float64(change[:3])
	length := math.Sqrt(w[0]*w[0] + w[1]*w[1] + w[2]*w[2])
	q := [4]float64{3: 1}
	if length > 1e-12 {
		sin, cos := math.Sincos(length / 2)
		q = [4]float64{w[0] / length * sin, w[1] / length * sin, w[2] / length * sin, cos}
	}
	rotation, _ := depth.Rotation(q)
	turned := depth.Pose{Rotation: rotation}.After(depth.Pose{Rotation: p.Rotation})
	translation := p.Translation
	for axis := range translation {
		translation[axis] += change[3+axis]
	}
	return depth.Pose{Rotation: turned.Rotation, Translation: translation}
}

// derivatives returns the derivatives of a corner's place in pixels by the point in the camera's coordinates.
func derivatives(c *depth.Camera, at [3]float64) (d [2][3]float64) {
	const step = 1e-5 // metres
	for axis := range 3 {
		more, less := at, at
		more[axis] += step
		less[axis] -= step
		u, v := miss(c, more, Sight{})
		u2, v2 := miss(c, less, Sight{})
		d[0][axis], d[1][axis] = (u-u2)/(2*step), (v-v2)/(2*step)
	}
	return d
}

// cross returns the derivatives of a rotated point by the rotation vector: minus the matrix of the cross product.
func cross(p [3]float64) [3][3]float64 {
	return [3][3]float64{{0, p[2], -p[1]}, {-p[2], 0, p[0]}, {p[1], -p[0], 0}}
}

func times(a [2][3]float64, b [3][3]float64) (c [2][3]float64) {
	for i := range c {
		for j := range c[i] {
			for k := range b {
				c[i][j] += a[i][k] * b[k][j]
			}
		}
	}
	return c
}

// row has the derivatives of one distance by the values of one motion.
type row [motionValues]float64

func rowOf(turn, shift [3]float64) row {
	return row{turn[0], turn[1], turn[2], shift[0], shift[1], shift[2]}
}

// cost returns the weight of a corner and its part of the sum.
func cost(u, v float64) (weight, part float64) {
	if off := math.Hypot(u, v); off > robust {
		return robust / off, robust * (2*off - robust)
	}
	return 1, u*u + v*v
}

// accumulate adds a corner to the normal equations. The blocks begin at the given values; a negative one is fixed.
func accumulate(matrix [][]float64, vector []float64, weight float64, off float64, begins [2]int, rows [2]row) {
	for i, from := range begins {
		if from < 0 {
			continue
		}
		for a := range motionValues {
			vector[from+a] += weight * rows[i][a] * off
			for k, to := range begins {
				if to < 0 {
					continue
				}
				for b := range motionValues {
					matrix[from+a][to+b] += weight * rows[i][a] * rows[k][b]
				}
			}
		}
	}
}

// bundle is the problem of all cameras and boards.
type bundle struct {
	*solver
	shots map[int]int // the block of each shot
}

func (b bundle) size() int { return motionValues * (len(b.rig) - 1 + len(b.shots)) }

// begins returns the first values of a camera and of a shot. The first camera is fixed.
func (b bundle) begins(v View) [2]int {
	return [2]int{motionValues * (v.Camera - 1), motionValues * (len(b.rig) - 1 + b.shots[v.Shot])}
}

func (b bundle) add(matrix [][]float64, vector []float64) float64 {
	sum := 0.0
	for _, v := range b.views {
		camera, place, motion := &b.cameras[v.Camera], b.boards[v.Shot], b.rig[v.Camera]
		for _, sight := range v.Sights {
			onBoard := depth.Pose{Rotation: place.Rotation}.Apply(sight.Board)
			inFirst := place.Apply(sight.Board)
			turned := depth.Pose{Rotation: motion.Rotation}.Apply(inFirst)
			at := motion.Apply(inFirst)
			u, w := miss(camera, at, sight)
			weight, part := cost(u, w)
			sum += part
			if matrix == nil {
				continue
			}
			d := derivatives(camera, at)
			turn := times(d, cross(turned))
			rotation := motion.Rotation
			if rotation == ([3][3]float64{}) {
				rotation = [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
			}
			shift := times(d, rotation)
			boardTurn := times(shift, cross(onBoard))
			for i, off := range [2]float64{u, w} {
				accumulate(matrix, vector, weight, off, b.begins(v.View),
					[2]row{rowOf(turn[i], d[i]), rowOf(boardTurn[i], shift[i])})
			}
		}
	}
	return sum
}

func (b bundle) move(changes []float64) func() {
	rig := append([]depth.Pose(nil), b.rig...)
	boards := make(map[int]depth.Pose, len(b.boards))
	for shot, p := range b.boards {
		boards[shot] = p
	}
	for i := range b.rig[1:] {
		b.rig[i+1] = moved(b.rig[i+1], changes[motionValues*i:][:motionValues])
	}
	for shot, block := range b.shots {
		begin := motionValues * (len(b.rig) - 1 + block)
		b.boards[shot] = moved(b.boards[shot], changes[begin:][:motionValues])
	}
	return func() { b.solver.rig, b.solver.boards = rig, boards }
}

// deviation is the standard deviation of a camera's position in metres and of its rotation in radians.
type deviation struct{ position, angle float64 }

// adjust minimises the distances of all corners and returns the deviations of the cameras.
func (s *solver) adjust() []deviation {
	b := bundle{s, make(map[int]int)}
	for _, v := range s.views {
		if _, ok := b.shots[v.Shot]; !ok {
			b.shots[v.Shot] = len(b.shots)
		}
	}
	minimise(b)
	n := b.size()
	matrix, vector := newMatrix(n), make([]float64, n)
	sum := b.add(matrix, vector)
	corners := 0
	for _, v := range s.views {
		corners += len(v.Sights)
	}
	variance := sum / float64(max(2*corners-n, 1))
	result := make([]deviation, len(s.cameras))
	if !factor(matrix) {
		for i := range result[1:] {
			result[i+1] = deviation{math.Inf(1), math.Inf(1)}
		}
		return result
	}
	for i := range s.cameras[1:] {
		var covariance [motionValues][motionValues]float64
		for a := range motionValues {
			column := make([]float64, n)
			column[motionValues*i+a] = variance
			substitute(matrix, column)
			for k := range motionValues {
				covariance[k][a] = column[motionValues*i+k]
			}
		}
		result[i+1] = spread(s.rig[i+1], covariance)
	}
	return result
}

// spread returns the deviations of a camera, given the covariance of the changes of its motion. A change by the
// rotation vector w and the translation t moves the camera by t - w × translation, up to a rotation.
func spread(motion depth.Pose, covariance [motionValues][motionValues]float64) deviation {
	var d deviation
	for axis := range 3 {
		d.angle += covariance[axis][axis]
		values := [motionValues]float64{}
		values[3+axis] = 1
		turn := cross(motion.Translation)[axis]
		for k := range 3 {
			values[k] = -turn[k]
		}
		for a := range motionValues {
			for k := range motionValues {
				d.position += values[a] * covariance[a][k] * values[k]
			}
		}
	}
	return deviation{math.Sqrt(d.position), math.Sqrt(d.angle)}
}
