package render

import (
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// View is where a picture is taken from, in the room's coordinates: right-handed, in metres, x right, y up.
type View struct {
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w; 0, 0, 0, 1 looks along -z with +y up. The zero one counts as that.
	Orientation [4]float64
	// FOV is the vertical angle of the picture in radians; 0 counts as 60 degrees.
	FOV float64
}

// Place is where an object stands in the room: its points are scaled, turned and moved, in this order. The zero Place
// leaves them where they are.
type Place struct {
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w; the zero one counts as 0, 0, 0, 1.
	Orientation [4]float64
	// Scale is how much larger the object is; 0 counts as 1.
	Scale float64
}

// defaultFOV is a third of a half turn, as of the usual viewer.
const defaultFOV = math.Pi / 3

// margin is how much larger than an object a picture is that is to show all of it.
const margin = 1.15

// Fit is a view of a box from the front, from so far away that all of it fits into a picture of the given width over
// height.
func Fit(box volumetric.BoundingBox, aspect float64) View {
	var centre, half [3]float64
	for axis := range centre {
		low, high := float64(box.Min[axis]), float64(box.Max[axis])
		centre[axis], half[axis] = (low+high)/2, (high-low)/2
	}
	// What is nearest is seen largest: the front of the box has to fit.
	distance := max(half[1], half[0]/aspect) * margin / math.Tan(defaultFOV/2)
	return View{Position: [3]float64{centre[0], centre[1], centre[2] + half[2] + max(distance, 2*near)},
		FOV: defaultFOV}
}

// rotation is the matrix of a quaternion, by rows. A quaternion that is not of length 1 is taken for the one of its
// direction.
func rotation(q [4]float64) [3][3]float64 {
	square := q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]
	if !(square > 0) {
		return [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	}
	x, y, z, w, s := q[0], q[1], q[2], q[3], 2/square
	return [3][3]float64{
		{1 - s*(y*y+z*z), s * (x*y - z*w), s * (x*z + y*w)},
		{s * (x*y + z*w), 1 - s*(x*x+z*z), s * (y*z - x*w)},
		{s * (x*z - y*w), s * (y*z + x*w), 1 - s*(x*x+y*y)},
	}
}

// camera turns an object's points into a picture: rows are right, up and away from the viewer, each with what is added.
type camera struct {
	rows [3][4]float32
	// focal is the distance in pixels at which a pixel is as large as it is seen, and grown how much larger than
	// published the object stands.
	focal, grown float32
}

// cameraOf joins an object's place with a view on a picture of so many rows.
func cameraOf(view View, place Place, height int) camera {
	fov := view.FOV
	if fov == 0 {
		fov = defaultFOV
	}
	scale := place.Scale
	if scale == 0 {
		scale = 1
	}
	// The eye's axes are the columns of its rotation: what is right of it, above it, and behind it.
	eye, object := rotation(view.Orientation), rotation(place.Orientation)
	var c camera
	c.focal, c.grown = float32(float64(height)/2/math.Tan(fov/2)), float32(scale)
	for i := range 3 {
		sign := 1.0
		if i == 2 {
			sign = -1
		}
		for j := range 3 {
			for k := range 3 {
				c.rows[i][j] += float32(sign * eye[k][i] * object[k][j] * scale)
			}
			c.rows[i][3] += float32(sign * eye[j][i] * (place.Position[j] - view.Position[j]))
		}
	}
	return c
}

// around is a box around an object's box, as it stands.
func (p Place) around(box volumetric.BoundingBox) volumetric.BoundingBox {
	scale, turn := p.Scale, rotation(p.Orientation)
	if scale == 0 {
		scale = 1
	}
	var all volumetric.BoundingBox
	for axis := range 3 {
		low, high := p.Position[axis], p.Position[axis]
		for k := range 3 {
			a, b := turn[axis][k]*scale*float64(box.Min[k]), turn[axis][k]*scale*float64(box.Max[k])
			low, high = low+min(a, b), high+max(a, b)
		}
		all.Min[axis], all.Max[axis] = float32(low), float32(high)
	}
	return all
}
