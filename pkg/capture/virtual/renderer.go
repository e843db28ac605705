package virtual

import (
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// Renderer renders the images of one camera. A Renderer belongs to one goroutine and keeps its memory.
type Renderer struct {
	camera Camera
	seed   uint64
	sensor *sensor
	// into contains the rows of the motion from the world to the camera, x right, y down, z forward.
	// into32 is the same for surfels.
	into   [3][4]float64
	into32 [3][4]float32
	// xs and ys are the points of the image plane that columns and rows see.
	xs, ys []float32

	// depths contains the depth of each pixel in metres, 0 if nothing is seen. colors are valid where depths are.
	depths []float32
	colors [][3]uint8

	triangles triangles
	surfels   surfels
}

// NewRenderer returns the renderer of a camera of a rig.
func NewRenderer(r Rig, camera int) *Renderer {
	c := r.Cameras[camera]
	pixels := c.Width * c.Height
	n := &Renderer{camera: c, seed: r.Seed*depth.MaxCameras + uint64(camera), sensor: newSensor(c.Noise),
		depths: make([]float32, pixels), colors: make([][3]uint8, pixels)}
	inverse := c.Pose.Inverse()
	for row := range 3 {
		sign := 1.0
		if row > 0 {
			sign = -1
		}
		for column := range 3 {
			n.into[row][column] = sign * inverse.Rotation[row][column]
		}
		n.into[row][3] = sign * inverse.Translation[row]
		for column, v := range n.into[row] {
			n.into32[row][column] = float32(v)
		}
	}
	for x := range c.Width {
		n.xs = append(n.xs, float32((float64(x)-c.CX)/c.FX))
	}
	for y := range c.Height {
		n.ys = append(n.ys, float32((float64(y)-c.CY)/c.FY))
	}
	return n
}

// see returns a point of the world in the camera's coordinates, x right, y down, z forward.
func (n *Renderer) see(p [3]float64) [3]float64 {
	var v [3]float64
	for row, m := range &n.into {
		v[row] = m[0]*p[0] + m[1]*p[1] + m[2]*p[2] + m[3]
	}
	return v
}

// finish adds the noise of a frame and makes the image.
func (n *Renderer) finish(frame int64, into *depth.Image) {
	n.sensor.apply(n.depths, n.camera.Width, n.seed, uint64(frame))
	into.Depth = slices.Grow(into.Depth[:0], len(n.depths))[:len(n.depths)]
	into.Colors = slices.Grow(into.Colors[:0], len(n.depths))[:len(n.depths)]
	into.Labels = into.Labels[:0]
	clear(into.Depth)
	clear(into.Colors)
	near, far, units := float32(n.camera.Near), float32(n.camera.Far), float32(1/n.camera.Unit)
	for i, z := range n.depths {
		if z >= near && z <= far {
			into.Depth[i] = uint16(max(1, min(math.MaxUint16, z*units+0.5)))
			into.Colors[i] = n.colors[i]
		}
	}
}

// span returns the pixels whose centres may be within a distance of a place, along one axis.
func span(place, reach float64, size int) (first, end int) {
	if !(place+reach >= 0 && place-reach <= float64(size-1)) {
		return 0, 0
	}
	return int(math.Ceil(max(0, place-reach))), int(math.Floor(min(float64(size-1), place+reach))) + 1
}
