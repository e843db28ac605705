package conversation

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// The camera of the paper: Azure Kinect, narrow field of view.
const (
	width, height = 640, 576
	pixels        = width * height
	// focal is the focal length for 75° over 640 pixels.
	focal = 417
	// ColourBytes are red, green, blue and alpha of each pixel, 1.4 MiB. DepthBytes are the positions of the pixels in
	// space, three numbers of 16 bits in millimetres each, 2.1 MiB.
	ColourBytes = 4 * pixels
	DepthBytes  = 6 * pixels
	// AudioBytes is the size of the audio in each frame of the paper.
	AudioBytes = 200_000
	FrameBytes = ColourBytes + DepthBytes + AudioBytes
)

// camera returns images of a person in front of a wall. The content determines the size of the mesh. The images are
// made before the measurement.
type camera struct {
	colour []byte
	// depth is in millimetres, row by row, 0 without a value.
	depth []uint16
	audio []byte
}

// The scene, in millimetres: a person 60 cm wide at 1.5 m, and a wall at 3 m, which is not part of the object.
const (
	personDepth = 1500
	wallDepth   = 3000
	objectDepth = 2500
)

// newCamera makes the images. Different seeds make different images.
func newCamera(seed uint64) *camera {
	random := rand.New(rand.NewPCG(seed, 4))
	c := &camera{colour: make([]byte, ColourBytes), depth: make([]uint16, pixels), audio: make([]byte, AudioBytes)}
	for i := range c.audio {
		c.audio[i] = byte(random.Uint32())
	}
	for y := range height {
		for x := range width {
			// An ellipse of 170 by 500 pixels is 60 by 180 cm at that distance.
			u, v := float64(x-width/2)/85, float64(y-height/2)/250
			depth := uint16(wallDepth)
			if d := 1 - u*u - v*v; d > 0 {
				depth = uint16(personDepth - 150*math.Sqrt(d))
			}
			at := y*width + x
			c.depth[at] = depth + uint16(random.Uint32N(4))
			binary.LittleEndian.PutUint32(c.colour[4*at:], random.Uint32()|0xff000000)
		}
	}
	return c
}

// compose builds a frame as the paper's sender does: the colours, the position of each pixel in space, and the audio.
func (c *camera) compose(into []byte) []byte {
	into = append(into[:0], c.colour...)
	for y := range height {
		for x := range width {
			z := int32(c.depth[y*width+x])
			into = binary.LittleEndian.AppendUint16(into, uint16(int32(x-width/2)*z/focal))
			into = binary.LittleEndian.AppendUint16(into, uint16(int32(height/2-y)*z/focal))
			into = binary.LittleEndian.AppendUint16(into, uint16(z))
		}
	}
	return append(into, c.audio...)
}

// mesh is the drawing of a receiver: the object's points with their colours, and triangles between neighbours.
type mesh struct {
	vertices [][3]float32
	colours  [][4]uint8
	indices  []uint32
	// index is the number of each pixel's vertex plus one, 0 without a vertex.
	index []uint32
}

// largestStep is the largest distance in depth between the corners of a triangle, in millimetres. A larger distance is
// an edge of the object.
const largestStep = 50

// extract extracts the object from a frame and makes its mesh, as the paper's receiver does. extract returns false for
// invalid frames.
func (m *mesh) extract(frame []byte) bool {
	if len(frame) != FrameBytes {
		return false
	}
	if m.index == nil {
		m.index = make([]uint32, pixels)
	}
	m.vertices, m.colours, m.indices = m.vertices[:0], m.colours[:0], m.indices[:0]
	places := frame[ColourBytes:][:DepthBytes]
	for at := range pixels {
		place := places[6*at:][:6]
		z := int16(binary.LittleEndian.Uint16(place[4:]))
		if z <= 0 || z > objectDepth {
			m.index[at] = 0
			continue
		}
		x, y := int16(binary.LittleEndian.Uint16(place)), int16(binary.LittleEndian.Uint16(place[2:]))
		m.vertices = append(m.vertices, [3]float32{float32(x) / 1000, float32(y) / 1000, float32(z) / 1000})
		m.colours = append(m.colours, [4]uint8(frame[4*at:][:4]))
		m.index[at] = uint32(len(m.vertices))
	}
	for y := range height - 1 {
		for x := range width - 1 {
			at := y*width + x
			m.triangle(at, at+width, at+1)
			m.triangle(at+1, at+width, at+width+1)
		}
	}
	return true
}

// triangle adds the triangle of three pixels if all three are part of the object and near each other.
func (m *mesh) triangle(a, b, c int) {
	i, j, k := m.index[a], m.index[b], m.index[c]
	if i == 0 || j == 0 || k == 0 {
		return
	}
	za, zb, zc := m.vertices[i-1][2], m.vertices[j-1][2], m.vertices[k-1][2]
	if max(za, zb, zc)-min(za, zb, zc) <= largestStep/1000.0 {
		m.indices = append(m.indices, i-1, j-1, k-1)
	}
}
