package virtual

import (
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// Surfels is a surface of discs at one instant: points with normals. Only the side of a disc to which the normal points
// is seen. The slices have the same length.
type Surfels struct {
	// Positions are in metres of the world, normals have length 1.
	Positions, Normals [][3]float32
	Colors             [][3]uint8
	// Radii are the radii of the discs in metres. Discs that overlap have no gaps.
	Radii []float32
}

const (
	// grazing is the least cosine of the angle between a normal and the ray to the camera at which a disc is seen.
	grazing = 0.02
	// thickness is the largest depth difference in metres of discs that are the same surface: more than the folds of
	// the synthetic figure's clothes, less than a finger.
	thickness = 0.006
	// maxReach is the largest radius of a disc in pixels.
	maxReach = 64
)

// surfels is the memory for a surface of discs.
type surfels struct {
	discs []disc
	// box is the box of the pixels that discs may cover: left, top, right and bottom.
	box [4]int32
	// nearest is the least depth of each pixel, and sums are the sums over the discs of its surface: weight, depth and
	// colour. Both are valid within the box.
	nearest []float32
	sums    [][5]float32
}

// disc is a visible surfel in the camera's coordinates, with the pixels that it may cover.
type disc struct {
	center, normal           [3]float32
	offset, square           float32 // center · normal; square of the radius
	left, right, top, bottom int32
	color                    [3]uint8
}

// RenderSurfels makes an image of a surface of discs with the noise of a frame. Depths and colours of a pixel are means
// over the discs of the nearest surface, weighted by the distance from their centres.
func (n *Renderer) RenderSurfels(s *Surfels, frame int64, into *depth.Image) {
	t := &n.surfels
	if t.nearest == nil {
		t.nearest, t.sums = make([]float32, len(n.depths)), make([][5]float32, len(n.depths))
	}
	t.discs = t.discs[:0]
	t.box = [4]int32{math.MaxInt32, math.MaxInt32, 0, 0}
	for i := range s.Positions {
		n.place(s, i)
	}
	width := int32(n.camera.Width)
	for y := t.box[1]; y < t.box[3]; y++ {
		first, end := y*width+t.box[0], y*width+t.box[2]
		fill(t.nearest[first:end], math.MaxFloat32)
		clear(t.sums[first:end])
	}
	// A pixel's discs are found twice, first for the nearest surface: a list of them would be as long as all discs are
	// large, which has no useful bound.
	for i := range t.discs {
		n.cover(&t.discs[i], false)
	}
	for i := range t.discs {
		n.cover(&t.discs[i], true)
	}
	clear(n.depths)
	for y := t.box[1]; y < t.box[3]; y++ {
		for i := y*width + t.box[0]; i < y*width+t.box[2]; i++ {
			sum := &t.sums[i]
			if sum[0] <= 0 {
				continue
			}
			scale := 1 / sum[0]
			n.depths[i] = sum[1] * scale
			for channel := range 3 {
				n.colors[i][channel] = uint8(sum[2+channel]*scale + 0.5)
			}
		}
	}
	n.finish(frame, into)
}

func fill(values []float32, value float32) {
	for i := range values {
		values[i] = value
	}
}

// place appends the disc of a surfel if the camera may see it.
func (n *Renderer) place(s *Surfels, index int) {
	var d disc
	p, m := &s.Positions[index], &s.Normals[index]
	for row := range 3 {
		to := &n.into32[row]
		d.center[row] = to[0]*p[0] + to[1]*p[1] + to[2]*p[2] + to[3]
		d.normal[row] = to[0]*m[0] + to[1]*m[1] + to[2]*m[2]
	}
	c := &d.center
	d.offset = c[0]*d.normal[0] + c[1]*d.normal[1] + c[2]*d.normal[2]
	away := float32(math.Sqrt(float64(c[0]*c[0] + c[1]*c[1] + c[2]*c[2])))
	radius := s.Radii[index]
	if !(d.offset < -grazing*away && c[2] > nearest+radius) {
		return
	}
	d.square = radius * radius
	z := float64(c[2])
	// A disc that faces the camera at an angle from its axis appears larger by 1/cos.
	reach := min(maxReach, float64(radius)/(z-float64(radius))*float64(away)/z*max(n.camera.FX, n.camera.FY))
	left, right := span(float64(c[0])/z*n.camera.FX+n.camera.CX, reach, n.camera.Width)
	top, bottom := span(float64(c[1])/z*n.camera.FY+n.camera.CY, reach, n.camera.Height)
	d.left, d.right, d.top, d.bottom = int32(left), int32(right), int32(top), int32(bottom)
	if left < right && top < bottom {
		d.color = s.Colors[index]
		t := &n.surfels
		t.discs = append(t.discs, d)
		t.box = [4]int32{min(t.box[0], d.left), min(t.box[1], d.top), max(t.box[2], d.right), max(t.box[3], d.bottom)}
	}
}

// cover finds the pixels that a disc covers. It either brings the nearest depths up to date or, when these are
// complete, adds the disc to the sums of the pixels where the disc belongs to the nearest surface.
func (n *Renderer) cover(d *disc, add bool) {
	t := &n.surfels
	normal, center := d.normal, d.center
	scale := 1 / d.square
	red, green, blue := float32(d.color[0]), float32(d.color[1]), float32(d.color[2])
	for y := d.top; y < d.bottom; y++ {
		down := n.ys[y]
		along := normal[1]*down + normal[2]
		row := int(y) * n.camera.Width
		nearest, sums := t.nearest[row:][:n.camera.Width], t.sums[row:][:n.camera.Width]
		for x := d.left; x < d.right; x++ {
			across := n.xs[x]
			toward := normal[0]*across + along
			if toward > -1e-4 {
				continue
			}
			z := d.offset / toward
			if z > nearest[x]+thickness {
				continue
			}
			u, v, w := across*z-center[0], down*z-center[1], z-center[2]
			rest := 1 - (u*u+v*v+w*w)*scale
			if rest <= 0 {
				continue
			}
			if !add {
				nearest[x] = min(nearest[x], z)
				continue
			}
			weight := rest * rest
			sum := &sums[x]
			sum[0] += weight
			sum[1] += weight * z
			sum[2] += weight * red
			sum[3] += weight * green
			sum[4] += weight * blue
		}
	}
}
