package virtual

import (
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// Mesh is a surface of triangles at one instant. Both sides of a triangle are seen.
type Mesh struct {
	// Vertices are in metres of the world.
	Vertices [][3]float64
	// Triangles contains indices of Vertices.
	Triangles [][3]uint32
	// Color returns the colour of a place in a triangle, and false if the surface is transparent there. share contains
	// the weights of the triangle's vertices, with the sum 1.
	Color func(triangle int, share [3]float64) ([3]uint8, bool)
	// Masked reports whether a triangle may be transparent somewhere; nil if none is.
	Masked func(triangle int) bool
}

// nearest is the depth of the plane at which triangles are clipped, in metres: nearer than any depth camera measures.
const nearest = 0.01

// triangles is the memory for a mesh.
type triangles struct {
	mesh     *Mesh
	vertices [][3]float64 // in the camera's coordinates
	// inverse is 1/z of the nearest surface of each pixel, 0 if there is none, and owner its triangle.
	inverse []float32
	owner   []int32
}

// RenderMesh makes an image of a mesh with the noise of a frame.
func (n *Renderer) RenderMesh(mesh *Mesh, frame int64, into *depth.Image) {
	t := &n.triangles
	t.mesh = mesh
	defer func() { t.mesh = nil }()
	if t.inverse == nil {
		t.inverse, t.owner = make([]float32, len(n.depths)), make([]int32, len(n.depths))
	}
	clear(t.inverse)
	t.vertices = t.vertices[:0]
	for _, v := range mesh.Vertices {
		t.vertices = append(t.vertices, n.see(v))
	}
	for i := range mesh.Triangles {
		n.draw(i)
	}
	n.shade()
	n.finish(frame, into)
}

// draw writes one triangle into the buffer.
func (n *Renderer) draw(triangle int) {
	t := &n.triangles
	corners := t.mesh.Triangles[triangle]
	a, b, c := t.vertices[corners[0]], t.vertices[corners[1]], t.vertices[corners[2]]
	// The plane normal · p = distance gives 1/z = normal · (x, y, 1) / distance along a ray (x, y, 1).
	normal := cross(minus(b, a), minus(c, a))
	distance := dot(normal, a)
	if math.Abs(distance) <= 1e-12*length(normal) || length(normal) == 0 {
		return // seen from the side, or without area
	}
	plane := [3]float64{normal[0] / distance, normal[1] / distance, normal[2] / distance}
	var clipped [4][3]float64
	corner := 0
	for i, from := range [3][3]float64{a, b, c} {
		to := [3][3]float64{b, c, a}[i]
		if from[2] >= nearest {
			clipped[corner] = from
			corner++
		}
		if (from[2] >= nearest) != (to[2] >= nearest) {
			along := (nearest - from[2]) / (to[2] - from[2])
			for axis := range 3 {
				clipped[corner][axis] = from[axis] + along*(to[axis]-from[axis])
			}
			corner++
		}
	}
	if corner < 3 {
		return
	}
	var places [4][2]float64
	for i, p := range clipped[:corner] {
		places[i] = [2]float64{p[0]/p[2]*n.camera.FX + n.camera.CX, p[1]/p[2]*n.camera.FY + n.camera.CY}
	}
	n.fill(triangle, plane, [3][2]float64{places[0], places[1], places[2]})
	if corner == 4 {
		n.fill(triangle, plane, [3][2]float64{places[0], places[2], places[3]})
	}
}

// fill writes the pixels of a triangle of the image. Pixels on its border belong to it, so that neighbouring triangles
// leave no gap.
func (n *Renderer) fill(triangle int, plane [3]float64, p [3][2]float64) {
	low, high := p[0], p[0]
	for _, place := range p[1:] {
		for axis := range 2 {
			low[axis], high[axis] = min(low[axis], place[axis]), max(high[axis], place[axis])
		}
	}
	left, right := span((low[0]+high[0])/2, (high[0]-low[0])/2, n.camera.Width)
	top, bottom := span((low[1]+high[1])/2, (high[1]-low[1])/2, n.camera.Height)
	var edges [3][3]float64 // of x, of y, and constant; not negative inside
	area := (p[1][0]-p[0][0])*(p[2][1]-p[0][1]) - (p[1][1]-p[0][1])*(p[2][0]-p[0][0])
	for i := range edges {
		from, to := p[i], p[(i+1)%3]
		across, down := to[1]-from[1], from[0]-to[0]
		if area > 0 {
			across, down = -across, -down
		}
		edges[i] = [3]float64{across, down, -across*from[0] - down*from[1]}
	}
	t := &n.triangles
	masked := t.mesh.Masked != nil && t.mesh.Masked(triangle)
	for y := top; y < bottom; y++ {
		row := y * n.camera.Width
		slope := float32(plane[0])
		base := float32(plane[1])*n.ys[y] + float32(plane[2])
		// The pixels of a row inside are an interval.
		first, last := float64(left), float64(right-1)
		for _, e := range edges {
			at := e[1]*float64(y) + e[2]
			switch {
			case e[0] > 0:
				first = max(first, -at/e[0]-1e-9)
			case e[0] < 0:
				last = min(last, -at/e[0]+1e-9)
			case at < 0:
				last = -1
			}
		}
		if !(first <= last) {
			continue // first may be beyond the range of an int
		}
		for x := int(math.Ceil(first)); float64(x) <= last; x++ {
			inverse := slope*n.xs[x] + base
			if inverse <= t.inverse[row+x] {
				continue
			}
			if masked {
				if _, ok := t.mesh.Color(triangle, n.share(triangle, x, y, inverse)); !ok {
					continue
				}
			}
			t.inverse[row+x], t.owner[row+x] = inverse, int32(triangle)
		}
	}
}

// share returns the weights of a triangle's vertices at a pixel.
func (n *Renderer) share(triangle, x, y int, inverse float32) [3]float64 {
	t := &n.triangles
	corners := t.mesh.Triangles[triangle]
	a, b, c := t.vertices[corners[0]], t.vertices[corners[1]], t.vertices[corners[2]]
	z := 1 / float64(inverse)
	p := [3]float64{float64(n.xs[x]) * z, float64(n.ys[y]) * z, z}
	normal := cross(minus(b, a), minus(c, a))
	whole := dot(normal, normal)
	share := [3]float64{
		dot(normal, cross(minus(c, b), minus(p, b))) / whole,
		dot(normal, cross(minus(a, c), minus(p, c))) / whole,
	}
	for i := range 2 {
		share[i] = min(1, max(0, share[i]))
	}
	share[1] = min(share[1], 1-share[0])
	share[2] = 1 - share[0] - share[1]
	return share
}

// shade computes depths and colours.
func (n *Renderer) shade() {
	t := &n.triangles
	for i, inverse := range t.inverse {
		n.depths[i] = 0
		if inverse <= 0 {
			continue
		}
		n.depths[i] = 1 / inverse
		triangle := int(t.owner[i])
		n.colors[i], _ = t.mesh.Color(triangle, n.share(triangle, i%n.camera.Width, i/n.camera.Width, inverse))
	}
}
