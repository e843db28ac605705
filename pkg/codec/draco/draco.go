// Package draco is the codec "draco" (FourCC "drco"): point clouds in the bit stream of Google's Draco, readable by every Draco decoder.
// It registers itself with package codec when it is imported and built with cgo, against Debian's libdraco-dev.
//
// A frame is a Draco point cloud (bit stream 2.3) in kd-tree coding with two attributes: POSITION, three floats quantised on the grid of
// Params.Box and PositionBits, and COLOR, three bytes that are kept exactly. The grid is written into the frame with all digits (Draco's own
// option for explicit quantisation rounds it to six decimals), so that tiles and qualities that share a box line up exactly.
//
// Params.Speed means what it means in Draco: 10 - Speed is the compression level, 6 at most. The walks over the tree are this package's
// own, with the same decisions and bits as Draco's; entropy coding is Draco's. For 40,000 points of a real capture of a person at 11 bits,
// in ns per point on one core of an AMD EPYC (Turin), beside Draco's own encoder and decoder:
//
//	Speed  bits/point  encode  Draco's  decode  Draco's
//	0-4    23.4        115     299      54      101
//	5-6    28.3         70     225      50       97
//	7-8    28.6         68     216      51       96
//	9-10   28.6         54     205      42       87
//
// So 4 is small, 10 is fast, and what lies between gains next to nothing. The size is that of points in the order of any capture, since
// the tree has no order.
//
// An encoder or decoder belongs to one goroutine at a time; encoders hold memory outside Go's heap until they are collected.
package draco

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

// MaxPoints is the largest number of points in a frame, for encoder and decoder alike: it bounds what a frame of a few bytes can make a
// receiver allocate (63 MB). It is what 16 MB, the default limit of a frame, hold at 32 bits per point.
const MaxPoints = 4 << 20

// ErrUnavailable says how to build a program that has this codec. It is the reason wherever Available is false, and wraps codec.ErrUnknown.
var ErrUnavailable = fmt.Errorf("%w: draco is not built in; build with CGO_ENABLED=1 after apt-get install g++ libdraco-dev", codec.ErrUnknown)
