package render

import (
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// View is the viewpoint of a picture in the room's coordinates: right-handed, in metres, x right, y up.
type View struct {
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w. 0, 0, 0, 1 looks along -z with +y up; the zero value means the same.
	Orientation [4]float64
	// FOV is the vertical field of view in radians. 0 means 60 degrees.
	FOV float64
}

// Place is the pose of an object in the room: its points are scaled, rotated and moved, in this order. The zero Place
// is the identity.
type Place struct {
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w. The zero value means 0, 0, 0, 1.
	Orientation [4]float64
	// Scale is the scale factor. 0 means 1.
	Scale float64
}

// defaultFOV is 60 degrees.
const defaultFOV = math.Pi / 3

// margin is the ratio of the picture's size to the object's size in Fit.
const margin = 1.15

// Fit returns a view of a box from the front, at a distance at which all of the box fits a picture of the given aspect
// ratio (width by height).
func Fit(box volumetric.BoundingBox, aspect float64) View {
	var centre, half [3]float64
	for axis := range centre {
		low, high := float64(box.Min[axis]), float64(box.Max[axis])
		centre[axis], half[axis] = (low+high)/2, (high-low)/2
	}
	// The nearest face appears largest, so that the front of the box must fit.
	distance := max(half[1], half[0]/aspect) * margin / math.Tan(defaultFOV/2)
	return View{Position: [3]float64{centre[0], centre[1], centre[2] + half[2] + max(distance, 2*near)},
		FOV: defaultFOV}
}

// rotation returns the matrix of a quaternion, by rows. The quaternion is normalised.
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

// camera projects an object's points: the rows of the affine matrix give the coordinates to the right, upwards and away
// from the viewer.
type camera struct {
	rows [3][4]float32
	// focal is the focal length in pixels. grown is the scale factor of the object.
	focal, grown float32
}

// cameraOf combines an object's pose with a view, for a picture of the given height in pixels.
func cameraOf(view View, place Place, height int) camera {
	fov := view.FOV
	if fov == 0 {
		fov = defaultFOV
	}
	scale := place.Scale
	if scale == 0 {
		scale = 1
	}
	// The axes of the view are the columns of its rotation: right, up and backwards.
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

// Around returns the bounding box of an object's box in the room.
func (p Place) Around(box volumetric.BoundingBox) volumetric.BoundingBox {
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
