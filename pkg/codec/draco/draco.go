// Package draco is the codec "draco" (FourCC "drco"): point clouds in the bit stream of Google's
// Draco, readable by every Draco decoder. It registers itself with package codec when it is
// imported and built with cgo, against Debian's libdraco-dev.
//
// A frame is a Draco point cloud (bit stream 2.3) with one attribute or two: POSITION, three floats
// quantised on the grid of Params.Box and PositionBits, and COLOR, three bytes that are kept
// exactly, unless Params.NoColors leaves them out. The grid is written into the frame with all
// digits (Draco's own option for explicit quantisation rounds it to six decimals), so that tiles
// and qualities that share a box line up exactly. Points are coded as a kd-tree, or with
// Params.Sequential in their order.
//
// Params.Speed means what it means in Draco: 10 - Speed is the compression level of a tree, 6 at
// most, and the effort for symbols of a sequence. The walks over the tree and the differences along
// a sequence are this package's own, with the same decisions and bits as Draco's; entropy coding is
// Draco's. Points go from Go's memory straight into the walks, and from those straight into Go's
// memory: C++ reads and writes the arrays of a cloud in place, and keeps what else it needs for the
// next frame. For 40,000 points of a real capture of a person at 11 bits, in no order, in ns per
// point of one core of a busy Xeon, beside Draco's own encoder and decoder:
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
// So 4 is small, 10 is fast, and what lies between gains next to nothing. The size is that of
// points in the order of any capture, since the tree has no order; a sequence is smaller where
// points follow each other in space. Package overhead measures all that anew.
//
// It is the codec "draco-mesh" (FourCC "drcm"), too: triangle meshes as any encoder of Draco makes
// them, which are decoded into their vertices by Draco itself.
//
// An encoder or decoder belongs to one goroutine at a time; encoders hold memory outside Go's heap
// until they are collected.
package draco

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

// MaxPoints is the largest number of points in a frame, for encoder and decoder alike.
const MaxPoints = codec.MaxPoints

// ErrUnavailable says how to build a program that has this codec. It is the reason wherever
// Available is false, and wraps codec.ErrUnknown.
var ErrUnavailable = fmt.Errorf(
	"%w: draco is not built in; build with CGO_ENABLED=1 after apt-get install g++ libdraco-dev libjpeg-dev libopus-dev libspeex-dev",
	codec.ErrUnknown,
)
