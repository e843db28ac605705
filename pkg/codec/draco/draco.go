// Package draco implements the codec "draco" (FourCC "drco"): point clouds in the bit stream of
// Google's Draco, readable by every Draco decoder. The package registers the codec if it is
// imported. Built with cgo, against Debian's libdraco-dev, it encodes and decodes. Built without cgo,
// it decodes in Go.
//
// A frame is a Draco point cloud (bit stream 2.3) with one or two attributes: POSITION, three
// floats quantized on the grid of Params.Box and PositionBits, and COLOR, three bytes that are kept
// exactly, unless Params.NoColors omits them. The grid is written to the frame with all digits, so
// that tiles and qualities that share a box coincide exactly; Draco's own option for explicit
// quantization rounds it to six decimals. Points are coded as a kd-tree, or in their order with
// Params.Sequential.
//
// Params.Speed has the same meaning as in Draco: 10 - Speed is the compression level of a tree, at
// most 6, and the effort for symbols of a sequence. The package implements the traversal of the
// tree and the differences along a sequence, with the same decisions and bits as Draco; entropy
// coding is Draco's. C++ reads and writes the arrays of a cloud in Go's memory in place, and keeps
// its other memory for the next frame. The table shows 40,000 points of a real capture of a person
// at 11 bits, in random order, in ns per point on one core of a busy Xeon, next to Draco's own
// encoder and decoder:
//
//	             Speed  bits/point  encode  Draco's  decode  Draco's
//	tree         0-4    23.4        202     539      108     206
//	             5-6    28.3        176     396      113     198
//	             7-8    28.6        167     367      107     207
//	             9-10   28.6        146     336       80     186
//	no colours   0-4    12.6        131     282       66     123
//	             7-8    12.7        137     232       64     124
//	sequence     7-10   54.2        209     247      114     155
//
// Therefore use speed 4 for small and 10 for fast frames; speeds between them gain next to nothing.
// The size applies to points in the order of any capture, because the tree has no order. A sequence
// is smaller if consecutive points are close in space. Package overhead repeats these measurements.
//
// With cgo the package also implements the codec "draco-mesh" (FourCC "drcm"): triangle meshes from any
// Draco encoder. Draco itself decodes them, and their vertices become the points.
//
// An encoder or decoder belongs to one goroutine at a time. Encoders hold memory outside of Go's
// heap until they are collected.
package draco

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

// MaxPoints is the maximum number of points in a frame, for encoder and decoder.
const MaxPoints = codec.MaxPoints

// ErrUnavailable explains how to build a program that encodes this codec and decodes meshes. ErrUnavailable is the reason
// if Available is false, and wraps codec.ErrUnknown.
var ErrUnavailable = fmt.Errorf(
	"%w: this program decodes point clouds of draco and encodes none, and decodes no meshes; build with CGO_ENABLED=1 "+
		"after apt-get install g++ libdraco-dev libjpeg-dev libopus-dev libspeex-dev",
	codec.ErrUnknown,
)
