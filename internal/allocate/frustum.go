package allocate

import (
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// usualFOV and usualAspect are the defaults of a viewpoint without a view: about those of one eye of a headset.
	usualFOV    = math.Pi / 2
	usualAspect = 1.0
	// widestHalf is the largest angle in radians from the middle of a view to its edge: the tangent is unbounded near a
	// right angle.
	widestHalf = 80 * math.Pi / 180
	// nearest is the near plane in metres.
	nearest = 1e-3
	// thinnest is the minimum extent of a box in metres: a flat box is visible from its edge as well.
	thinnest = 0.01
)

// frustum is the view of a viewpoint. In view coordinates the eye is at the origin and looks along -z with +y up.
type frustum struct {
	eye     vector
	toView  rotation
	view    window
	half    [2]float64 // angles from the middle to the right and to the upper edge
	screens float64    // shares of the view per unit of area at distance 1
}

// window is half the width and half the height of a view, at distance 1.
type window struct{ x, y float64 }

// newFrustum returns the frustum of a viewpoint; ok is false if the viewpoint is not finite.
func newFrustum(v *Viewpoint) (f frustum, ok bool) {
	orientation, ok := newRotation(v.Orientation)
	if !ok || !vector(v.Position).usable() {
		return frustum{}, false
	}
	fov, aspect := v.FOV, v.Aspect
	if !(fov >= 0.01 && fov < math.Pi) {
		fov = usualFOV
	}
	fov = min(fov, 2*widestHalf)
	if !(aspect >= 0.1 && aspect <= 10) {
		aspect = usualAspect
	}
	y := math.Tan(fov / 2)
	x := min(y*aspect, math.Tan(widestHalf))
	return frustum{
		eye:     v.Position,
		toView:  orientation.inverse(),
		view:    window{x: x, y: y},
		half:    [2]float64{math.Atan(x), fov / 2},
		screens: 1 / (4 * x * y),
	}, true
}

// placement is the pose of an object relative to a frustum.
type placement struct {
	axes   [3]vector // of the object, in view coordinates, scaled
	origin vector    // of the object, in view coordinates
	eye    vector    // in the object's coordinates
	scale  float64
}

// place computes the placement of an object; ok is false if its pose is not finite.
func (f *frustum) place(pose *Pose) (p placement, ok bool) {
	orientation, ok := newRotation(pose.Orientation)
	p.scale = pose.Scale
	if p.scale == 0 {
		p.scale = 1
	}
	if !ok || !vector(pose.Position).usable() || !(p.scale > 1e-6 && p.scale < 1e6) {
		return placement{}, false
	}
	p.axes = f.toView.after(orientation).columns()
	for i := range p.axes {
		p.axes[i] = p.axes[i].times(p.scale)
	}
	offset := vector(pose.Position).minus(f.eye)
	p.origin = f.toView.apply(offset)
	p.eye = orientation.inverse().apply(offset.times(-1 / p.scale))
	return p, true
}

// box is a tile's box: a corner and the extents from that corner.
type box struct{ low, size vector }

// newBox converts a tile's box; ok is false if the box is unknown: without size, or not finite.
func newBox(b *volumetric.BoundingBox) (_ box, ok bool) {
	var result box
	for axis := range 3 {
		low, high := float64(b.Min[axis]), float64(b.Max[axis])
		if high < low {
			return box{}, false
		}
		result.low[axis], result.size[axis] = low, high-low
	}
	if result.size == (vector{}) || !result.low.usable() || !result.size.usable() {
		return box{}, false
	}
	for axis := range 3 {
		if missing := thinnest - result.size[axis]; missing > 0 {
			result.low[axis] -= missing / 2
			result.size[axis] = thinnest
		}
	}
	return result, true
}

func (b *box) center() vector { return b.low.plus(b.size.times(0.5)) }

// faces lists the corners of each face of a box in order around the face: bit 0 of a corner is the far end along x, bit
// 1 along y, bit 2 along z. Faces 2i and 2i+1 are the near and the far face along axis i.
var faces = [6][4]uint8{{0, 2, 6, 4}, {1, 3, 7, 5}, {0, 1, 5, 4}, {2, 3, 7, 6}, {0, 1, 3, 2}, {4, 5, 7, 6}}

// area returns the share of the view that the visible part of a box covers, and whether the whole box is inside the
// view.
//
// The faces turned towards the eye do not overlap in the view, so the sum of their clipped areas is that of the box.
func (f *frustum) area(p *placement, b *box) (share float64, entire bool) {
	var showing [3]uint8
	count := 0
	for axis := range 3 {
		switch {
		case p.eye[axis] < b.low[axis]:
			showing[count] = uint8(2 * axis)
			count++
		case p.eye[axis] > b.low[axis]+b.size[axis]:
			showing[count] = uint8(2*axis + 1)
			count++
		}
	}
	if count == 0 { // the eye is inside the box, which surrounds it
		return 1, false
	}
	var corners [8]vector
	low := p.origin
	for axis := range 3 {
		low = low.plus(p.axes[axis].times(b.low[axis]))
	}
	corners[0] = low
	for axis := range 3 {
		edge := p.axes[axis].times(b.size[axis])
		for i := range 1 << axis {
			corners[i|1<<axis] = corners[i].plus(edge)
		}
	}
	covered, entire := f.view.cover(&corners, showing[:count])
	return covered * f.screens, entire
}

// silhouette returns the share of the view that a box would cover in the middle of the view, from its outline in the
// direction of the eye.
func (f *frustum) silhouette(p *placement, b *box) float64 {
	toEye := p.eye.minus(b.center())
	distance := max(toEye.length(), b.size.length()/2)
	outline := math.Abs(toEye[0])*b.size[1]*b.size[2] + math.Abs(toEye[1])*b.size[0]*b.size[2] + math.Abs(
		toEye[2])*b.size[0]*b.size[1]
	return outline / (distance * distance * distance) * f.screens
}

// beyond returns the angle in radians between the edge of the view and a box outside the view, horizontal and vertical
// angle combined, or 0 if they may intersect.
//
// A bounding sphere is too coarse: around a part of a person, which is as tall as the whole and a fifth as wide, it
// reaches 40° further from 1.5 m away.
func (f *frustum) beyond(p *placement, b *box) float64 {
	low := p.origin
	for axis := range 3 {
		low = low.plus(p.axes[axis].times(b.low[axis]))
	}
	var edges [3]vector
	for axis := range 3 {
		edges[axis] = p.axes[axis].times(b.size[axis])
	}
	// Over all corners: the largest cosine of the horizontal angle, and the smallest tangents upwards and downwards.
	aside, up, down := -1.0, math.Inf(1), math.Inf(1)
	var left, right, front bool
	for i := range 8 {
		corner := low
		for axis := range 3 {
			if i>>axis&1 == 1 {
				corner = corner.plus(edges[axis])
			}
		}
		level := max(math.Hypot(corner[0], corner[2]), nearest)
		aside = max(aside, -corner[2]/level)
		up, down = min(up, corner[1]/level), min(down, -corner[1]/level)
		left, right, front = left || corner[0] <= 0, right || corner[0] >= 0, front || corner[2] < 0
	}
	if left && right && front {
		aside = 1 // A part of the box may be straight ahead, above or below.
	}
	beside := max(math.Acos(min(aside, 1))-f.half[0], 0)
	above := max(math.Atan(max(up, down))-f.half[1], 0)
	return math.Hypot(beside, above)
}

// outside returns a bit for each side of the window that the point is beyond; bit 4 is behind the eye.
func (w window) outside(p vector) uint8 {
	var code uint8
	x, y := -p[2]*w.x, -p[2]*w.y
	if p[0] < -x {
		code |= 1
	}
	if p[0] > x {
		code |= 2
	}
	if p[1] < -y {
		code |= 4
	}
	if p[1] > y {
		code |= 8
	}
	if p[2] > -nearest {
		code |= 16
	}
	return code
}

// cover returns the area, at distance 1, of the visible parts of the faces, and whether all corners are inside.
func (w window) cover(corners *[8]vector, showing []uint8) (area float64, entire bool) {
	var any, all uint8 = 0, 31
	for _, corner := range corners {
		code := w.outside(corner)
		any |= code
		all &= code
	}
	if all != 0 {
		return 0, false
	}
	for _, face := range showing {
		var shape polygon
		for i, corner := range faces[face] {
			shape.points[i] = corners[corner]
		}
		shape.count = 4
		if any != 0 {
			shape.clip(w, any)
		}
		area += shape.projected()
	}
	return area, any == 0
}

// polygon is a convex polygon in view coordinates. A quadrangle cut by five planes has at most nine corners.
type polygon struct {
	points [9]vector
	count  int
}

// clip removes the parts beyond the sides of the window in code.
func (s *polygon) clip(w window, code uint8) {
	for side := range 5 {
		if code>>side&1 == 0 {
			continue
		}
		var cut polygon
		for i := range s.count {
			a, b := s.points[i], s.points[(i+1)%s.count]
			da, db := w.inside(side, a), w.inside(side, b)
			if da >= 0 && cut.count < len(cut.points) {
				cut.points[cut.count] = a
				cut.count++
			}
			if da >= 0 != (db >= 0) && cut.count < len(cut.points) {
				cut.points[cut.count] = a.mix(b, da/(da-db))
				cut.count++
			}
		}
		*s = cut
	}
}

// inside is proportional to the distance from a side of the window, and negative beyond the side. The sides are
// numbered as the bits of outside.
func (w window) inside(side int, p vector) float64 {
	switch side {
	case 0:
		return p[0] - p[2]*w.x
	case 1:
		return -p[0] - p[2]*w.x
	case 2:
		return p[1] - p[2]*w.y
	case 3:
		return -p[1] - p[2]*w.y
	default:
		return -nearest - p[2]
	}
}

// projected returns the area of the projection at distance 1.
func (s *polygon) projected() float64 {
	if s.count < 3 {
		return 0
	}
	var sum float64
	last := s.points[s.count-1]
	x0, y0 := last[0]/-last[2], last[1]/-last[2]
	for _, p := range s.points[:s.count] {
		x, y := p[0]/-p[2], p[1]/-p[2]
		sum += x0*y - x*y0
		x0, y0 = x, y
	}
	return math.Abs(sum) / 2
}
