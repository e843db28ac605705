package extrinsics

import (
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// locate returns the motion from the board to the camera of one view.
func (s *solver) locate(v View) (depth.Pose, bool) {
	camera := &s.cameras[v.Camera]
	var points [][4]float64 // x, y on the board, x, y in the image plane
	for _, sight := range v.Sights {
		x, y, ok := camera.Deproject(sight.U, sight.V)
		if !ok {
			return depth.Pose{}, false
		}
		points = append(points, [4]float64{sight.Board[0], sight.Board[1], x, y})
	}
	first, ok := poseOf(points)
	if !ok {
		return depth.Pose{}, false
	}
	// A plane that is far away or small fits nearly as well when it is tilted to the other side (D. Oberkampf et al.,
	// "Iterative pose estimation using coplanar feature points", 1996): both are adjusted.
	best, least := depth.Pose{}, math.Inf(1)
	for _, start := range []depth.Pose{first, tilted(first)} {
		p := &single{camera: camera, view: v, place: start}
		minimise(p)
		if sum := p.add(nil, nil); sum < least && p.place.Translation[2] > 0 {
			best, least = p.place, sum
		}
	}
	return best, !math.IsInf(least, 1)
}

// tilted returns the place of a board that is tilted to the other side of the line of sight.
func tilted(p depth.Pose) depth.Pose {
	r, t := p.Rotation, p.Translation
	length := math.Sqrt(t[0]*t[0] + t[1]*t[1] + t[2]*t[2])
	normal := [3]float64{r[0][2], r[1][2], r[2][2]}
	sight := [3]float64{t[0] / length, t[1] / length, t[2] / length}
	axis := [3]float64{normal[1]*sight[2] - normal[2]*sight[1], normal[2]*sight[0] - normal[0]*sight[2],
		normal[0]*sight[1] - normal[1]*sight[0]}
	sin := math.Sqrt(axis[0]*axis[0] + axis[1]*axis[1] + axis[2]*axis[2])
	if sin < 1e-6 {
		return p
	}
	// Twice the angle between the normal and the line of sight brings the normal to the other side.
	tilt := math.Atan2(sin, normal[0]*sight[0]+normal[1]*sight[1]+normal[2]*sight[2])
	half := math.Sin(tilt) / sin
	turn, ok := depth.Rotation([4]float64{axis[0] * half, axis[1] * half, axis[2] * half, math.Cos(tilt)})
	if !ok {
		return p
	}
	return depth.Pose{Rotation: depth.Pose{Rotation: turn}.After(depth.Pose{Rotation: r}).Rotation, Translation: t}
}

// single is the problem of one view.
type single struct {
	camera *depth.Camera
	view   View
	place  depth.Pose
}

func (p *single) size() int { return motionValues }

func (p *single) add(matrix [][]float64, vector []float64) float64 {
	sum := 0.0
	for _, sight := range p.view.Sights {
		turned := depth.Pose{Rotation: p.place.Rotation}.Apply(sight.Board)
		at := p.place.Apply(sight.Board)
		u, w := miss(p.camera, at, sight)
		weight, part := cost(u, w)
		sum += part
		if matrix == nil {
			continue
		}
		d := derivatives(p.camera, at)
		turn := times(d, cross(turned))
		for i, off := range [2]float64{u, w} {
			accumulate(matrix, vector, weight, off, [2]int{0, -1}, [2]row{rowOf(turn[i], d[i])})
		}
	}
	return sum
}

func (p *single) move(changes []float64) func() {
	before := p.place
	p.place = moved(before, changes)
	return func() { p.place = before }
}

// poseOf returns the motion from a plane to the camera by the homography between them (Z. Zhang, "A flexible new
// technique for camera calibration", 2000).
func poseOf(points [][4]float64) (depth.Pose, bool) {
	h, ok := homography(points)
	if !ok {
		return depth.Pose{}, false
	}
	column := func(i int) [3]float64 { return [3]float64{h[i], h[3+i], h[6+i]} }
	a, b, t := column(0), column(1), column(2)
	length := func(v [3]float64) float64 { return math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2]) }
	scale := 2 / (length(a) + length(b))
	if t[2] < 0 {
		scale = -scale
	}
	for i := range 3 {
		a[i], b[i], t[i] = a[i]*scale, b[i]*scale, t[i]*scale
	}
	// The nearest rotation with orthogonal columns, the error shared between both.
	la := length(a)
	for i := range a {
		a[i] /= la
	}
	along := a[0]*b[0] + a[1]*b[1] + a[2]*b[2]
	for i := range b {
		b[i] -= along * a[i]
	}
	lb := length(b)
	if !(lb > 1e-9) {
		return depth.Pose{}, false
	}
	for i := range b {
		b[i] /= lb
	}
	c := [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
	p := depth.Pose{Translation: t}
	for i := range 3 {
		p.Rotation[i] = [3]float64{a[i], b[i], c[i]}
	}
	return p, p.Validate() == nil
}

// homography returns the matrix, row by row with the last value 1, that maps the first two values of the points to the
// last two. It returns false if the points are on a line.
func homography(points [][4]float64) ([9]float64, bool) {
	const unknown = 8
	matrix, vector := newMatrix(unknown), make([]float64, unknown)
	for _, p := range points {
		x, y, u, v := p[0], p[1], p[2], p[3]
		for _, equation := range [2][unknown + 1]float64{
			{x, y, 1, 0, 0, 0, -u * x, -u * y, u}, {0, 0, 0, x, y, 1, -v * x, -v * y, v},
		} {
			for i := range unknown {
				vector[i] += equation[i] * equation[unknown]
				for k := range unknown {
					matrix[i][k] += equation[i] * equation[k]
				}
			}
		}
	}
	if !factor(matrix) {
		return [9]float64{}, false
	}
	substitute(matrix, vector)
	h := [9]float64{8: 1}
	copy(h[:], vector)
	return h, true
}
