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
	// nearest is the least depth of each pixel, and sums are the sums over the discs of its surface: weight, depth and
	// colour.
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
	for i := range t.nearest {
		t.nearest[i] = math.MaxFloat32
	}
	clear(t.sums)
	t.discs = t.discs[:0]
	for i := range s.Positions {
		n.place(s, i)
	}
	for i := range t.discs {
		n.cover(&t.discs[i], func(pixel int, z, _ float32) { t.nearest[pixel] = min(t.nearest[pixel], z) })
	}
	for i := range t.discs {
		d := &t.discs[i]
		n.cover(d, func(pixel int, z, square float32) {
			if z > t.nearest[pixel]+thickness {
				return
			}
			weight := 1 - square/d.square
			weight *= weight
			sum := &t.sums[pixel]
			sum[0] += weight
			sum[1] += weight * z
			for channel, v := range d.color {
				sum[2+channel] += weight * float32(v)
			}
		})
	}
	for i := range n.depths {
		sum := &t.sums[i]
		n.depths[i] = 0
		if sum[0] <= 0 {
			continue
		}
		n.depths[i] = sum[1] / sum[0]
		for channel := range 3 {
			n.colors[i][channel] = uint8(sum[2+channel]/sum[0] + 0.5)
		}
	}
	n.finish(frame, into)
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
		n.surfels.discs = append(n.surfels.discs, d)
	}
}

// cover visits the pixels that a disc covers, with the depth and the square of the distance from the disc's centre.
func (n *Renderer) cover(d *disc, visit func(pixel int, z, square float32)) {
	for y := d.top; y < d.bottom; y++ {
		down := n.ys[y]
		along := d.normal[1]*down + d.normal[2]
		row := int(y) * n.camera.Width
		for x := d.left; x < d.right; x++ {
			across := n.xs[x]
			toward := d.normal[0]*across + along
			if toward > -1e-4 {
				continue
			}
			z := d.offset / toward
			u, v, w := across*z-d.center[0], down*z-d.center[1], z-d.center[2]
			if square := u*u + v*v + w*w; square < d.square {
				visit(row+int(x), z, square)
			}
		}
	}
}
