package depth

import "math"

// Picture is what a colour camera saw. Its pixels have their centre at whole coordinates.
type Picture interface {
	// RGB is the colour of a pixel of the camera's width and height.
	RGB(x, y int) [3]uint8
}

// Alignment finds for every pixel of a depth camera what a colour camera beside it saw there. It never changes, so any number of goroutines may use
// it, each with a Registration of its own.
type Alignment struct {
	width, height int // of depth
	color         Camera
	unit          float64
	rays          [][3]float64 // of the depth camera, in the colour camera's coordinates with y down and z forward; zero where there is none
	offset        [3]float64
	// perPixel is how many of the squares of the colour picture, in which the nearest point hides those behind it, a pixel is wide.
	perPixel float64
	columns  int
	cells    int
}

// NewAlignment takes both cameras, and the motion from the depth camera's coordinates into those of the colour camera. The cameras' poses do not matter.
func NewAlignment(depth, color Camera, toColor Pose) (*Alignment, error) {
	for _, c := range []*Camera{&depth, &color} {
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	if err := toColor.Validate(); err != nil {
		return nil, err
	}
	motion := FromVision(toColor) // the same turn of axes leads back
	a := &Alignment{
		width: depth.Width, height: depth.Height, color: color, unit: depth.Unit,
		rays:   make([][3]float64, depth.Width*depth.Height),
		offset: motion.Translation,
		// Points of a surface that faces the camera lie less than a square apart in the colour picture: the nearest in every square is then one of them.
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

// Registration is the memory of one alignment.
type Registration struct {
	pixels  []int32 // of the colour picture by pixel of depth, -1 for none
	far     []float32
	nearest []float32 // by cell
}

// hidden is how much farther than the nearest point of its cell a point is another surface, as a part of its depth.
const hidden = 0.03

// Align gives the image's pixels their colours from a picture. Pixels of depth that the colour camera did not see, since its picture ends before or
// something stands in between, lose their depth: a colour of something else is worse than a point less.
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

// project gives where the colour camera sees what a pixel has at a depth, and how far from it that is.
func (a *Alignment) project(pixel int, d float64) (u, v, z float64, ok bool) {
	ray := &a.rays[pixel]
	z = ray[2]*d + a.offset[2]
	if !(z > 0.01) { // so, too, without a ray
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
