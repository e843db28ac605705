package depth

import (
	"fmt"
	"math"
)

// Pose is a rigid motion: p becomes Rotation · p + Translation. The zero Pose is the identity.
type Pose struct {
	// Rotation contains the rows of the matrix. All zeros mean the identity, so that the zero Pose
	// is usable.
	Rotation [3][3]float64 `json:"rotation"`
	// Translation is in metres.
	Translation [3]float64 `json:"translation"`
}

var identity = [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}

// vision converts between x right, y up, z back and x right, y down, z forward, in both directions.
var vision = Pose{Rotation: [3][3]float64{{1, 0, 0}, {0, -1, 0}, {0, 0, -1}}}

func (p Pose) matrix() [3][3]float64 {
	if p.Rotation == ([3][3]float64{}) {
		return identity
	}
	return p.Rotation
}

// Apply returns the moved point.
func (p Pose) Apply(v [3]float64) [3]float64 {
	r := p.matrix()
	for i := range 3 {
		r[i][0] = r[i][0]*v[0] + r[i][1]*v[1] + r[i][2]*v[2] + p.Translation[i]
	}
	return [3]float64{r[0][0], r[1][0], r[2][0]}
}

// Inverse returns the inverse motion.
func (p Pose) Inverse() Pose {
	r := p.matrix()
	var inverse Pose
	for i := range 3 {
		for j := range 3 {
			inverse.Rotation[i][j] = r[j][i]
			inverse.Translation[i] -= r[j][i] * p.Translation[j]
		}
	}
	return inverse
}

// After returns this motion after another: After(first).Apply(v) equals Apply(first.Apply(v)).
func (p Pose) After(first Pose) Pose {
	a, b := p.matrix(), first.matrix()
	after := Pose{Translation: p.Apply(first.Translation)}
	for i := range 3 {
		for j := range 3 {
			after.Rotation[i][j] = a[i][0]*b[0][j] + a[i][1]*b[1][j] + a[i][2]*b[2][j]
		}
	}
	return after
}

// FromVision converts a motion between cameras with OpenCV's axes (x right, y down, z forward) to
// this package's axes.
func FromVision(p Pose) Pose { return vision.After(p).After(vision) }

// maxPlace is the maximum distance of a camera from the origin, in metres. Beyond it, float32
// coordinates have steps of a millimetre.
const maxPlace = 1e4

// Validate returns an error that wraps ErrCamera if the motion is invalid.
func (p Pose) Validate() error {
	for _, t := range p.Translation {
		if !(math.Abs(t) <= maxPlace) {
			return fmt.Errorf(
				"%w: position is %v, expected metres of at most %g",
				ErrCamera,
				p.Translation,
				float64(maxPlace),
			)
		}
	}
	if _, ok := orthonormal(p.matrix()); !ok {
		return fmt.Errorf("%w: rotation is %v, expected three orthogonal rows of length 1", ErrCamera, p.Rotation)
	}
	return nil
}

// orthonormal corrects the rounding errors of a rotation. orthonormal returns false if r is no rotation: more than 1 %
// off, or a mirror.
func orthonormal(r [3][3]float64) ([3][3]float64, bool) {
	for i := range r {
		for j := range i {
			along := dot(r[i], r[j])
			if !(math.Abs(along) < 0.01) {
				return r, false
			}
			for k := range 3 {
				r[i][k] -= along * r[j][k]
			}
		}
		length := math.Sqrt(dot(r[i], r[i]))
		if !(math.Abs(length-1) < 0.01) {
			return r, false
		}
		for k := range 3 {
			r[i][k] /= length
		}
	}
	up := [3]float64{
		r[0][1]*r[1][2] - r[0][2]*r[1][1],
		r[0][2]*r[1][0] - r[0][0]*r[1][2],
		r[0][0]*r[1][1] - r[0][1]*r[1][0],
	}
	return r, dot(up, r[2]) > 0
}

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// Rotation returns the matrix of a quaternion x, y, z, w. Rotation returns false if the quaternion's length is near
// zero or too large.
func Rotation(q [4]float64) ([3][3]float64, bool) {
	norm := q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]
	if !(norm > 1e-12 && norm < 1e12) {
		return identity, false
	}
	s := 2 / norm
	x, y, z, w := q[0], q[1], q[2], q[3]
	return [3][3]float64{
		{1 - s*(y*y+z*z), s * (x*y - z*w), s * (x*z + y*w)},
		{s * (x*y + z*w), 1 - s*(x*x+z*z), s * (y*z - x*w)},
		{s * (x*z - y*w), s * (y*z + x*w), 1 - s*(x*x+y*y)},
	}, true
}

// Quaternion returns the rotation as a quaternion x, y, z, w of length 1 (Shepperd, "Quaternion from rotation matrix",
// 1978).
func (p Pose) Quaternion() [4]float64 {
	r := p.matrix()
	squares := [4]float64{
		1 + r[0][0] - r[1][1] - r[2][2],
		1 - r[0][0] + r[1][1] - r[2][2],
		1 - r[0][0] - r[1][1] + r[2][2],
		1 + r[0][0] + r[1][1] + r[2][2],
	}
	largest := 0
	for i, s := range squares {
		if s > squares[largest] {
			largest = i
		}
	}
	var q [4]float64
	switch largest {
	case 0:
		q = [4]float64{squares[0], r[1][0] + r[0][1], r[0][2] + r[2][0], r[2][1] - r[1][2]}
	case 1:
		q = [4]float64{r[1][0] + r[0][1], squares[1], r[2][1] + r[1][2], r[0][2] - r[2][0]}
	case 2:
		q = [4]float64{r[0][2] + r[2][0], r[2][1] + r[1][2], squares[2], r[1][0] - r[0][1]}
	default:
		q = [4]float64{r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1], squares[3]}
	}
	length := math.Sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3])
	for i := range q {
		q[i] /= length
	}
	return q
}
