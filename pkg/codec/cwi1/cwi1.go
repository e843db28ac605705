// Package cwi1 decodes the codec "cwi1" (FourCC "cwi1"), the default of VR2Gather: an octree with the colours of its
// leaves as a JPEG image. The package registers the codec if it is imported. It needs no cgo and does not encode.
//
// The format is that of CWI's point cloud library (cwipc_codec), which extends the octree codec of the Point Cloud
// Library. The source is the public code of both; frames of that library are decoded to the same positions. All numbers
// are little-endian:
//
//	offset  size  content
//	0       28    "<PCL-OCT-CODECV2-COMPRESSED>"
//	28      20    "<PCL-OCT-COMPRESSED>"
//	48      4     number of the frame, ignored
//	52      1     1: the octree does not refer to another frame
//	53      1     1: one point at the centre of each leaf
//	54      1     1 with colours, 0 without
//	55      8     number of points p, at least 1
//	63      8     edge of a leaf in metres, float64
//	71      9     ignored
//	80      48    box of the octree: minimum x, y, z, then maximum, float64 in metres
//	128     8     capture time in milliseconds since 1970; see the header of VR2Gather's frames
//	136     13    ignored
//	149     1     0: the points are at the centres
//	150     2     ignored
//	152     4     1: the image has the snake layout below
//	156     5     ignored
//	161     8     number of bytes t of the octree
//	169     …     a range-coded section of t bytes
//	…       8     with colours, number of bytes of the image
//	…       …     with colours, a range-coded section with the image
//
// Nothing follows.
//
// The octree has one byte for each branch, depth first: bit i is set if child i exists. Bit 2 of i is the half of x,
// bit 1 that of y, and bit 0 that of z. The depth follows from the box and the edge of a leaf.
//
// A section begins with 257 cumulative frequencies of the values of a byte, four bytes each, and continues with the
// output of a range coder with 32 bits without carries (D. Subbotin), which ends with four bytes.
//
// The image is 256 pixels wide and p/256+1 pixels high. The points of the octree in their order fill blocks of 8×8
// pixels from left to right and from top to bottom. In a block, rows run alternately to the right and to the left. The
// first channel of a pixel is blue, the last one red.
//
// An empty cloud is a frame with one black point at the origin.
package cwi1

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/jpegimage"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// errEncode is the reason for which no cloud is encoded.
var errEncode = fmt.Errorf("encode cwi1: %w: this program only decodes cwi1", codec.ErrParams)

func init() { codec.Register(cwi1{}) }

type cwi1 struct{}

func (cwi1) FourCC() codec.FourCC { return codec.FourCC{'c', 'w', 'i', '1'} }
func (cwi1) Name() string         { return "cwi1" }
func (cwi1) Capabilities() codec.Capabilities {
	return codec.Capabilities{Colors: true, Steps: []int{0}, MaxPoints: codec.MaxPoints}
}
func (cwi1) NewEncoder() codec.Encoder { return encoder{} }
func (cwi1) NewDecoder() codec.Decoder { return new(decoder) }

// encoder refuses all clouds.
type encoder struct{}

// Encode returns an error that wraps codec.ErrParams.
func (encoder) Encode(dst []byte, _ *pointcloud.Cloud, _ codec.Params) ([]byte, error) {
	return dst, errEncode
}

const (
	outerName = "<PCL-OCT-CODECV2-COMPRESSED>"
	innerName = "<PCL-OCT-COMPRESSED>"

	// headerBytes is the size of the header with the number of bytes of the octree.
	headerBytes = 169
	// mostDepth is the maximum depth of the octree: 65,536 leaves along an edge. VR2Gather's trees have 9 to 12 levels.
	mostDepth = 16
	// pixelBytes and tableBytes bound the bytes of the image: twice the samples of its pixels, and its tables.
	pixelBytes, tableBytes = 3, 4096
	// imageWidth is the width of the image in pixels.
	imageWidth = 256
	// blockEdge is the edge of a block in pixels.
	blockEdge = 8
)

// header has the values of a frame that decoding needs.
type header struct {
	points, depth int
	colored       bool
	edge          float64
	low           [3]float64
	// branches is the number of bytes of the octree.
	branches int
}

// parse checks the header of a frame. Errors wrap codec.ErrMalformed.
func parse(data []byte) (h header, err error) {
	malformed := func(format string, arguments ...any) (header, error) {
		return header{}, fmt.Errorf("%w: "+format, append([]any{codec.ErrMalformed}, arguments...)...)
	}
	if len(data) < headerBytes {
		return malformed("frame has %d bytes, expected at least %d", len(data), headerBytes)
	}
	if names := outerName + innerName; string(data[:len(names)]) != names {
		return malformed("frame begins with %q, expected %q", data[:len(names)], names)
	}
	if data[52] != 1 || data[53] != 1 || data[54] > 1 {
		return malformed("octree is % x, expected 01 01, then 00 or 01: whole, one point for each leaf, colours",
			data[52:55])
	}
	if coding := binary.LittleEndian.Uint32(data[152:]); data[149] != 0 || data[54] == 1 && coding != 1 {
		return malformed("points have the form %d and colours the form %d, expected 0 and 1", data[149], coding)
	}
	h.colored = data[54] == 1
	most := codec.MostPoints(len(data), codec.MaxPoints)
	points, branches := binary.LittleEndian.Uint64(data[55:]), binary.LittleEndian.Uint64(data[161:])
	// Real trees have about as many branches as points, so that the same bound applies.
	if points < 1 || points > uint64(most) || branches < 1 || branches > uint64(most) {
		return malformed("%d points and %d branches in %d bytes, expected 1 to %d", points, branches, len(data), most)
	}
	h.points, h.branches = int(points), int(branches)
	h.edge = math.Float64frombits(binary.LittleEndian.Uint64(data[63:]))
	longest := 0.0
	for axis := range h.low {
		low := math.Float64frombits(binary.LittleEndian.Uint64(data[80+8*axis:]))
		high := math.Float64frombits(binary.LittleEndian.Uint64(data[104+8*axis:]))
		if !(math.Abs(low) <= math.MaxFloat32 && math.Abs(high) <= math.MaxFloat32 && high > low) {
			return malformed("box reaches from %g to %g m, expected finite numbers, the first one smaller", low, high)
		}
		h.low[axis] = low
		longest = max(longest, high-low)
	}
	if !(h.edge > 0 && longest/h.edge <= 1<<mostDepth+1) {
		return malformed("leaves of %g m in a box of %g m, expected at most %d along an edge", h.edge, longest,
			1<<mostDepth)
	}
	h.grow(data, longest)
	return h, nil
}

// grow determines the depth of the octree, and its lower corner, as the library does: the octree is a cube whose edge
// is a power of two of leaves, with the box in its middle.
func (h *header) grow(data []byte, longest float64) {
	// epsilon is the smallest float32 above 1, less 1: the library's tolerance.
	const epsilon = 1.0 / (1 << 23)
	leaves := max(math.Ceil((longest-epsilon)/h.edge), 2)
	h.depth = min(int(math.Ceil(math.Log2(leaves)-epsilon)), mostDepth)
	side := math.Ldexp(h.edge, h.depth)
	for axis := range h.low {
		high := math.Float64frombits(binary.LittleEndian.Uint64(data[104+8*axis:]))
		if over := (side - (high - h.low[axis])) / 2; over > epsilon {
			h.low[axis] -= over
		}
	}
}

// decoder keeps its memory for the next frame.
type decoder struct {
	section section
	image   []byte
	pixels  []byte
}

// Announced implements codec.Announcer.
func (*decoder) Announced(data []byte) (int, error) {
	h, err := parse(data)
	if err != nil {
		return 0, fmt.Errorf("decode cwi1: %w", err)
	}
	return h.points, nil
}

// Decode replaces the cloud's points by the frame's.
func (d *decoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := d.decode(cloud, data); err != nil {
		cloud.Reset()
		return fmt.Errorf("decode cwi1: %w", err)
	}
	if isEmpty(cloud) {
		cloud.Reset()
	}
	return nil
}

// isEmpty reports whether the cloud is the single point by which the library describes a cloud without points.
func isEmpty(cloud *pointcloud.Cloud) bool {
	if cloud.Len() != 1 {
		return false
	}
	for axis, v := range cloud.Positions[0] {
		if math.Abs(float64(v)) >= 0.01 || cloud.Colors[0][axis] >= 2 {
			return false
		}
	}
	return true
}

func (d *decoder) decode(cloud *pointcloud.Cloud, data []byte) error {
	h, err := parse(data)
	if err != nil {
		return err
	}
	if err := d.section.start(data[headerBytes:]); err != nil {
		return fmt.Errorf("octree: %w", err)
	}
	if err := d.readTree(cloud, h); err != nil {
		return fmt.Errorf("octree: %w", err)
	}
	rest := d.section.rest()
	if h.colored {
		if rest, err = d.readColors(cloud, rest); err != nil {
			return fmt.Errorf("colours: %w", err)
		}
	} else {
		for range h.points {
			cloud.Colors = append(cloud.Colors, codec.White)
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes behind the points, expected none", codec.ErrMalformed, len(rest))
	}
	return nil
}

// readColors decodes the image and returns the data behind it.
func (d *decoder) readColors(cloud *pointcloud.Cloud, data []byte) ([]byte, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("%w: %d bytes, expected at least 8", codec.ErrMalformed, len(data))
	}
	height := cloud.Len()/imageWidth + 1
	size, most := binary.LittleEndian.Uint64(data), pixelBytes*imageWidth*height+tableBytes
	if size < 1 || size > uint64(most) {
		return nil, fmt.Errorf("%w: image of %d pixels has %d bytes, expected 1 to %d", codec.ErrMalformed,
			imageWidth*height, size, most)
	}
	if err := d.section.start(data[8:]); err != nil {
		return nil, err
	}
	d.image = d.image[:0]
	for range size {
		value, err := d.section.next()
		if err != nil {
			return nil, err
		}
		d.image = append(d.image, value)
	}
	var err error
	if d.pixels, err = jpegimage.Decode(d.pixels, d.image, imageWidth, height); err != nil {
		return nil, err
	}
	for i := range cloud.Len() {
		pixel := d.pixels[jpegimage.Channels*pixelOf(i, height):]
		cloud.Colors = append(cloud.Colors, [3]uint8{pixel[2], pixel[1], pixel[0]})
	}
	return d.section.rest(), nil
}

// pixelOf returns the position of a point's pixel in an image of the given height. The last row of blocks has as many
// rows as remain.
func pixelOf(point, height int) int {
	const stripe = imageWidth * blockEdge
	top := point / stripe * blockEdge
	rows := min(blockEdge, height-top)
	block, inside := point%stripe/(blockEdge*rows), point%stripe%(blockEdge*rows)
	column := inside % blockEdge
	if point/blockEdge%2 == 1 {
		column = blockEdge - 1 - column
	}
	return (top+inside/blockEdge)*imageWidth + block*blockEdge + column
}
