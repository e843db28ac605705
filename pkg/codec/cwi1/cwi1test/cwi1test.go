// Package cwi1test encodes frames of the codec "cwi1" for tests and measurements. The package follows the documentation
// of package cwi1 and shares no code with the decoder. VR2Gather's own encoder adapts the octree to the points; here
// the caller determines the octree.
package cwi1test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"math"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Octree describes a frame: coloured leaves of an octree.
type Octree struct {
	// Depth is the number of levels, at least 1, Edge the edge of a leaf in metres, and Low the lower corner.
	Depth int
	Edge  float64
	Low   [3]float64
	// Leaves has the colour of each leaf, by its place in leaves from Low. There must be one leaf at least.
	Leaves map[[3]uint32][3]uint8
	// Plain omits the colours.
	Plain bool
}

// Of returns the octree of a cloud with leaves of the given edge in metres. A leaf has the colour of one of its points.
func Of(cloud *pointcloud.Cloud, edge float64) Octree {
	bounds := cloud.Bounds()
	o := Octree{Depth: 1, Edge: edge, Leaves: make(map[[3]uint32][3]uint8, cloud.Len())}
	for axis, v := range bounds.Min {
		o.Low[axis] = float64(v) - edge/2
		for math.Ldexp(edge, o.Depth) <= float64(bounds.Max[axis])-o.Low[axis] {
			o.Depth++
		}
	}
	for i, p := range cloud.Positions {
		var leaf [3]uint32
		for axis, v := range p {
			leaf[axis] = uint32((float64(v) - o.Low[axis]) / edge)
		}
		o.Leaves[leaf] = cloud.Colors[i]
	}
	return o
}

// Encode returns the frame, and the cloud to which it decodes, with colours as before compression.
func (o Octree) Encode() ([]byte, *pointcloud.Cloud) {
	all := make([][3]uint32, 0, len(o.Leaves))
	for leaf := range o.Leaves {
		all = append(all, leaf)
	}
	tree, order := o.serialize(nil, nil, 0, [3]uint32{}, all)
	frame := append(o.header(len(order), len(tree)), Section(tree)...)
	cloud := new(pointcloud.Cloud)
	for _, leaf := range order {
		var p [3]float32
		for axis := range p {
			p[axis] = float32((float64(leaf[axis])+0.5)*o.Edge + o.Low[axis])
		}
		rgb := [3]uint8{255, 255, 255}
		if !o.Plain {
			rgb = o.Leaves[leaf]
		}
		cloud.Append(p, rgb)
	}
	if !o.Plain {
		picture := snake(cloud.Colors)
		frame = binary.LittleEndian.AppendUint64(frame, uint64(len(picture)))
		frame = append(frame, Section(picture)...)
	}
	return frame, cloud
}

// serialize appends the branch at a place of its level to tree, and its leaves to order.
func (o Octree) serialize(tree []byte, order [][3]uint32, depth int, at [3]uint32, inside [][3]uint32) ([]byte,
	[][3]uint32) {
	if depth == o.Depth {
		return tree, append(order, at)
	}
	var children [8][][3]uint32
	shift := o.Depth - depth - 1
	for _, leaf := range inside {
		child := leaf[0]>>shift&1<<2 | leaf[1]>>shift&1<<1 | leaf[2]>>shift&1
		children[child] = append(children[child], leaf)
	}
	place := len(tree)
	tree = append(tree, 0)
	for i, part := range children {
		if len(part) > 0 {
			tree[place] |= 1 << i
			next := [3]uint32{at[0]<<1 | uint32(i>>2), at[1]<<1 | uint32(i>>1&1), at[2]<<1 | uint32(i&1)}
			tree, order = o.serialize(tree, order, depth+1, next, part)
		}
	}
	return tree, order
}

// header returns the header of a frame.
func (o Octree) header(points, branches int) []byte {
	frame := []byte("<PCL-OCT-CODECV2-COMPRESSED><PCL-OCT-COMPRESSED>")
	double := func(v float64) { frame = binary.LittleEndian.AppendUint64(frame, math.Float64bits(v)) }
	colored := byte(1)
	if o.Plain {
		colored = 0
	}
	frame = append(frame, 1, 0, 0, 0, 1, 1, colored)
	frame = binary.LittleEndian.AppendUint64(frame, uint64(points))
	double(o.Edge)
	frame = append(frame, 8)
	double(o.Edge)
	for _, v := range o.Low {
		double(v)
	}
	for _, v := range o.Low {
		double(v + math.Ldexp(o.Edge, o.Depth) - 1.0/(1<<23))
	}
	frame = binary.LittleEndian.AppendUint64(frame, 1_795_188_600_000)
	double(o.Edge)
	frame = append(frame, 8)
	frame = binary.LittleEndian.AppendUint32(frame, 85)
	frame = append(frame, 0, 0, 0)
	frame = binary.LittleEndian.AppendUint32(frame, 1)
	frame = binary.LittleEndian.AppendUint32(frame, 16)
	frame = append(frame, 0)
	return binary.LittleEndian.AppendUint64(frame, uint64(branches))
}

// snake returns a JPEG image of the colours, walked pixel by pixel.
func snake(colors [][3]uint8) []byte {
	height := len(colors)/256 + 1
	// image/jpeg writes colours with halved chroma.
	picture := image.NewRGBA(image.Rect(0, 0, 256, height))
	left, top, x, y, right := 0, 0, 0, 0, true
	for i := range 256 * height {
		c := colors[min(i, len(colors)-1)]
		picture.SetRGBA(left+x, top+y, color.RGBA{R: c[2], G: c[1], B: c[0], A: 255})
		if right && x < 7 {
			x++
			continue
		}
		if !right && x > 0 {
			x--
			continue
		}
		right = !right
		y++
		if y == 8 || top+y == height {
			y = 0
			if left += 8; left == 256 {
				left, top = 0, top+8
			}
		}
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, picture, &jpeg.Options{Quality: 95}); err != nil {
		panic(err)
	}
	return file.Bytes()
}

// Section returns a range-coded section with data: the cumulative frequencies, and the range coder's output.
func Section(data []byte) []byte {
	var frequencies [257]uint32
	for _, b := range data {
		frequencies[int(b)+1]++
	}
	for i := 1; i <= 256; i++ {
		frequencies[i] = frequencies[i-1] + max(frequencies[i], 1)
	}
	for frequencies[256] >= 1<<16 {
		for i := 1; i <= 256; i++ {
			frequencies[i] = max(frequencies[i]/2, frequencies[i-1]+1)
		}
	}
	var out []byte
	for _, v := range frequencies {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	low, width := uint32(0), uint32(math.MaxUint32)
	shift := func() {
		out = append(out, byte(low>>24))
		low, width = low<<8, width<<8
	}
	for _, b := range data {
		width /= frequencies[256]
		low += frequencies[b] * width
		width *= frequencies[int(b)+1] - frequencies[b]
		for {
			if low>>24 == (low+width)>>24 {
				shift()
			} else if width < 1<<16 {
				width = -low & 0xffff
				shift()
			} else {
				break
			}
		}
	}
	for range 4 {
		shift()
	}
	return out
}
