package depth

import "math"

// Picture is an image of a colour camera. Pixel centres are at integer coordinates.
type Picture interface {
	// RGB returns the colour of a pixel within the camera's width and height.
	RGB(x, y int) [3]uint8
}

// Alignment finds for every pixel of a depth camera the corresponding pixel of a colour camera next to it. An Alignment
// is immutable and safe for concurrent use; each goroutine needs its own Registration.
type Alignment struct {
	width, height int // of depth images
	color         Camera
	unit          float64
	// of the depth camera, in the colour camera's coordinates with y down and z forward; zero if
	// there is none
	rays   [][3]float64
	offset [3]float64
	// perPixel is the width of a pixel in squares. The colour image is divided into squares, in
	// which the nearest point hides the points behind it.
	perPixel float64
	columns  int
	cells    int
}

// NewAlignment returns the alignment of two cameras, given the motion from the depth camera's
// coordinates to those of the colour camera. The poses of the cameras are ignored.
func NewAlignment(depth, color Camera, toColor Pose) (*Alignment, error) {
	for _, c := range []*Camera{&depth, &color} {
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	if err := toColor.Validate(); err != nil {
		return nil, err
	}
	motion := FromVision(toColor) // the same rotation of axes converts in both directions
	a := &Alignment{
		width: depth.Width, height: depth.Height, color: color, unit: depth.Unit,
		rays:   make([][3]float64, depth.Width*depth.Height),
		offset: motion.Translation,
		// Points of a surface that faces the camera are less than a square apart in the colour
		// image, so that every square of the surface contains one of its points.
		perPixel: 1 / max(1, 1.5*color.FX/depth.FX),
	}
	a.columns = int(float64(color.Width)*a.perPixel) + 1
	a.cells = a.columns * (int(float64(color.Height)*a.perPixel) + 1)
	turn := Pose{Rotation: motion.Rotation}
	for v := range depth.Height {
		for u := range depth.Width {
			x, y, ok := depth.Deproject(float64(u), float64(v))
			if !ok {
				x = math.NaN()
			}
			a.rays[v*depth.Width+u] = turn.Apply([3]float64{x, y, 1})
		}
	}
	return a, nil
}

// Registration is the working memory of an alignment.
type Registration struct {
	pixels  []int32 // pixel of the colour image per depth pixel, -1 for none
	far     []float32
	nearest []float32 // by cell
}

// hidden is the relative depth difference to the nearest point of a cell beyond which a point
// belongs to another surface.
const hidden = 0.03

// Align sets the colours of the image's pixels from a picture. Depth pixels that the colour camera
// did not see, because they are outside of its image or hidden, lose their depth: a missing point
// is better than a wrong colour.
func (a *Alignment) Align(image *Image, picture Picture, r *Registration) {
	r.reset(len(a.rays), a.cells)
	for i, raw := range image.Depth[:len(a.rays)] {
		r.pixels[i] = -1
		if raw == 0 {
			continue
		}
		u, v, z, ok := a.project(i, float64(raw)*a.unit)
		if !ok {
			continue
		}
		r.pixels[i], r.far[i] = int32(int(v+0.5)*a.color.Width+int(u+0.5)), float32(z)
		cell := &r.nearest[a.cellOf(u, v)]
		*cell = min(*cell, float32(z))
	}
	image.Colors = resize(image.Colors, len(a.rays))
	for i, pixel := range r.pixels {
		image.Colors[i] = [3]uint8{}
		if pixel < 0 {
			image.Depth[i] = 0
			continue
		}
		x, y := int(pixel)%a.color.Width, int(pixel)/a.color.Width
		if r.far[i] > r.nearest[a.cellOf(float64(x), float64(y))]*(1+hidden) {
			image.Depth[i] = 0
			continue
		}
		image.Colors[i] = picture.RGB(x, y)
	}
}

// project returns the position in the colour image of a pixel's point at depth d, and the point's
// distance z from the colour camera.
func (a *Alignment) project(pixel int, d float64) (u, v, z float64, ok bool) {
	ray := &a.rays[pixel]
	z = ray[2]*d + a.offset[2]
	if !(z > 0.01) { // also without a ray
		return 0, 0, 0, false
	}
	u, v, ok = a.color.Project((ray[0]*d+a.offset[0])/z, (ray[1]*d+a.offset[1])/z)
	return u, v, z, ok && u >= 0 && v >= 0 && u < float64(a.color.Width)-1 && v < float64(a.color.Height)-1
}

func (a *Alignment) cellOf(u, v float64) int { return int(v*a.perPixel)*a.columns + int(u*a.perPixel) }

func (r *Registration) reset(pixels, cells int) {
	r.pixels, r.far, r.nearest = resize(r.pixels, pixels), resize(r.far, pixels), resize(r.nearest, cells)
	for i := range r.nearest {
		r.nearest[i] = float32(math.Inf(1))
	}
}

func resize[T any](values []T, n int) []T {
	if cap(values) < n {
		return make([]T, n)
	}
	return values[:n]
}
