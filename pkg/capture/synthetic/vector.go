package synthetic

import "math"

// vector is a point or direction in metres.
type vector [3]float64

func (a vector) add(b vector) vector               { return vector{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }
func (a vector) sub(b vector) vector               { return vector{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func (a vector) scale(f float64) vector            { return vector{a[0] * f, a[1] * f, a[2] * f} }
func (a vector) times(b vector) vector             { return vector{a[0] * b[0], a[1] * b[1], a[2] * b[2]} }
func (a vector) dot(b vector) float64              { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a vector) length() float64                   { return math.Sqrt(a.dot(a)) }
func (a vector) unit() vector                      { return a.scale(1 / a.length()) }
func (a vector) mirrored() vector                  { return vector{-a[0], a[1], a[2]} }
func (a vector) toward(b vector, w float64) vector { return a.add(b.sub(a).scale(w)) }

func (a vector) cross(b vector) vector {
	return vector{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// quaternion is a rotation (w, x, y, z) of length 1.
type quaternion [4]float64

var noRotation = quaternion{1}

const degree = math.Pi / 180

// rotation returns the rotation by an angle in radians about a unit vector.
func rotation(axis vector, angle float64) quaternion {
	sin, cos := math.Sincos(angle / 2)
	return quaternion{cos, axis[0] * sin, axis[1] * sin, axis[2] * sin}
}

// times returns the rotation b followed by a.
func (a quaternion) times(b quaternion) quaternion {
	return quaternion{
		a[0]*b[0] - a[1]*b[1] - a[2]*b[2] - a[3]*b[3],
		a[0]*b[1] + a[1]*b[0] + a[2]*b[3] - a[3]*b[2],
		a[0]*b[2] - a[1]*b[3] + a[2]*b[0] + a[3]*b[1],
		a[0]*b[3] + a[1]*b[2] - a[2]*b[1] + a[3]*b[0],
	}
}

func (a quaternion) inverse() quaternion { return quaternion{a[0], -a[1], -a[2], -a[3]} }

// mirrored returns the rotation mirrored between left and right.
func (a quaternion) mirrored() quaternion { return quaternion{a[0], a[1], -a[2], -a[3]} }

// part returns the rotation about the same axis by a fraction of the angle (spherical interpolation
// from none).
func (a quaternion) part(w float64) quaternion {
	if a[0] < 0 {
		a = quaternion{-a[0], -a[1], -a[2], -a[3]}
	}
	sin := math.Sqrt(a[1]*a[1] + a[2]*a[2] + a[3]*a[3])
	if sin < 1e-9 {
		return noRotation
	}
	half := math.Atan2(sin, a[0]) * w
	s, c := math.Sincos(half)
	return quaternion{c, a[1] / sin * s, a[2] / sin * s, a[3] / sin * s}
}

func (a quaternion) apply(v vector) vector {
	u := vector{a[1], a[2], a[3]}
	t := u.cross(v).scale(2)
	return v.add(t.scale(a[0])).add(u.cross(t))
}

// turning returns the rotation that maps one pair of directions (along, and roughly aside) to
// another.
func turning(fromAlong, fromAside, toAlong, toAside vector) quaternion {
	swing := between(fromAlong.unit(), toAlong.unit())
	axis := toAlong.unit()
	level := func(v vector) vector { return v.sub(axis.scale(v.dot(axis))).unit() }
	a, b := level(swing.apply(fromAside)), level(toAside)
	return rotation(axis, math.Atan2(a.cross(b).dot(axis), a.dot(b))).times(swing)
}

// between returns the shortest rotation from one unit vector to another that is not opposite.
func between(a, b vector) quaternion {
	c := a.cross(b)
	q := quaternion{1 + a.dot(b), c[0], c[1], c[2]}
	n := math.Sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3])
	return quaternion{q[0] / n, q[1] / n, q[2] / n, q[3] / n}
}

// motion is a rigid motion: a rotation followed by a translation.
type motion struct {
	turn  quaternion
	shift vector
}

func (m motion) apply(v vector) vector { return m.turn.apply(v).add(m.shift) }

// about returns a rotation about a point.
func about(pivot vector, turn quaternion) motion {
	return motion{turn: turn, shift: pivot.sub(turn.apply(pivot))}
}

// after returns the motion b followed by m.
func (m motion) after(b motion) motion {
	return motion{turn: m.turn.times(b.turn), shift: m.apply(b.shift)}
}

// matrix is an affine map for points: the rows of a 3×3 matrix, then the translation.
type matrix [12]float32

// matrix returns the map that stretches about a centre before it moves.
func (m motion) matrix(centre, stretch vector) matrix {
	var columns [3]vector
	for axis := range 3 {
		var unit vector
		unit[axis] = stretch[axis]
		columns[axis] = m.turn.apply(unit)
	}
	shift := m.apply(centre)
	var out matrix
	for row := range 3 {
		for axis := range 3 {
			out[3*row+axis] = float32(columns[axis][row])
			shift[row] -= columns[axis][row] * centre[axis]
		}
		out[9+row] = float32(shift[row])
	}
	return out
}
