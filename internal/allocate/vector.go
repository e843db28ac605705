package allocate

import "math"

type vector [3]float64

func (v vector) plus(w vector) vector  { return vector{v[0] + w[0], v[1] + w[1], v[2] + w[2]} }
func (v vector) minus(w vector) vector { return vector{v[0] - w[0], v[1] - w[1], v[2] - w[2]} }
func (v vector) times(factor float64) vector {
	return vector{v[0] * factor, v[1] * factor, v[2] * factor}
}
func (v vector) dot(w vector) float64           { return v[0]*w[0] + v[1]*w[1] + v[2]*w[2] }
func (v vector) length() float64                { return math.Sqrt(v.dot(v)) }
func (v vector) mix(w vector, t float64) vector { return v.plus(w.minus(v).times(t)) }

// farthest is the largest coordinate of a position in metres. Beyond it, squares in double precision are not exact to a
// micrometre.
const farthest = 1e6

func (v vector) usable() bool {
	for _, x := range v {
		if !(math.Abs(x) <= farthest) { // also false for NaN
			return false
		}
	}
	return true
}

// rotation is a unit quaternion x, y, z, w.
type rotation [4]float64

var unrotated = rotation{0, 0, 0, 1}

// newRotation normalises a quaternion. The zero quaternion is no rotation; ok is false if the quaternion is not finite.
func newRotation(q [4]float64) (r rotation, ok bool) {
	square := q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]
	switch {
	case square == 0:
		return unrotated, true
	case !(square > 1e-12 && square < 1e12): // also true for NaN
		return unrotated, false
	}
	factor := 1 / math.Sqrt(square)
	return rotation{q[0] * factor, q[1] * factor, q[2] * factor, q[3] * factor}, true
}

func (r rotation) inverse() rotation { return rotation{-r[0], -r[1], -r[2], r[3]} }

// after returns the rotation that applies q first and then r.
func (r rotation) after(q rotation) rotation {
	return rotation{
		r[3]*q[0] + r[0]*q[3] + r[1]*q[2] - r[2]*q[1],
		r[3]*q[1] - r[0]*q[2] + r[1]*q[3] + r[2]*q[0],
		r[3]*q[2] + r[0]*q[1] - r[1]*q[0] + r[2]*q[3],
		r[3]*q[3] - r[0]*q[0] - r[1]*q[1] - r[2]*q[2],
	}
}

// columns returns the images of the three axes.
func (r rotation) columns() [3]vector {
	x, y, z, w := r[0], r[1], r[2], r[3]
	return [3]vector{
		{1 - 2*(y*y+z*z), 2 * (x*y + w*z), 2 * (x*z - w*y)},
		{2 * (x*y - w*z), 1 - 2*(x*x+z*z), 2 * (y*z + w*x)},
		{2 * (x*z + w*y), 2 * (y*z - w*x), 1 - 2*(x*x+y*y)},
	}
}

func (r rotation) apply(v vector) vector {
	c := r.columns()
	return c[0].times(v[0]).plus(c[1].times(v[1])).plus(c[2].times(v[2]))
}

// turn returns the rotation vector: its direction is the axis, its length the angle, at most half a turn.
func (r rotation) turn() vector {
	if r[3] < 0 {
		r = rotation{-r[0], -r[1], -r[2], -r[3]}
	}
	axis := vector{r[0], r[1], r[2]}
	sine := axis.length()
	if sine < 1e-9 {
		return axis.times(2)
	}
	return axis.times(2 * math.Atan2(sine, r[3]) / sine)
}

// rotationBy returns the rotation with the rotation vector v.
func rotationBy(v vector) rotation {
	angle := v.length()
	if angle < 1e-9 {
		return rotation{v[0] / 2, v[1] / 2, v[2] / 2, 1}
	}
	axis := v.times(math.Sin(angle/2) / angle)
	return rotation{axis[0], axis[1], axis[2], math.Cos(angle / 2)}
}
