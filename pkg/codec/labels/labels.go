// Package labels is the codec "labels" (FourCC "labl"): a cloud coded by another codec, and beside
// it what that one does not keep of the points: their labels, and the cameras that saw them. Both
// are put into the order in which the other codec decodes the points, where neighbours follow each
// other and have the same label mostly, and compressed by Zstandard. It needs no cgo of its own.
//
// A frame is, with all numbers little-endian,
//
//	offset  size  what
//	0       4     FourCC of the codec that codes the points
//	4       4     number of bytes g of its frame, at least 1
//	8       4     number of points n, at least 1
//	12      1     what there is beside: bit 0 for labels, bit 1 for sources
//	13      g     the frame of that codec
//	13+g    rest  where there is anything beside, one Zstandard frame of planes of n bytes: low bytes of labels, high bytes of labels, low bytes of sources, high bytes
//
// Encoders and decoders keep their memory; each is used by one goroutine at a time.
package labels

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

// fourCC is that of all codecs of this package.
var fourCC = codec.FourCC{'l', 'a', 'b', 'l'}

// Bits of what there is beside points.
const (
	hasLabels  = 1
	hasSources = 2
)

// headerBytes is the size of what precedes the points.
const headerBytes = 13

// maxPoints bounds a frame's points.
const maxPoints = codec.MaxPoints

// New makes a codec whose points are coded by another one, nil for Draco, or zstd in a program that
// was built without. Its frames are decoded by every codec of this package. Codecs that do not tell
// the order of their points, which their Capabilities say, give an error around codec.ErrUnknown.
func New(inner codec.Codec) (codec.Codec, error) {
	if inner != nil && (inner.FourCC() == fourCC || !inner.Capabilities().Ordered) {
		return nil, fmt.Errorf(
			"%w: labels beside %s, which does not tell the order of its points",
			codec.ErrUnknown,
			inner.Name(),
		)
	}
	return labelled{inner}, nil
}

func init() { codec.Register(labelled{}) }

// labelled is a codec by another one, nil for the best that there is.
type labelled struct{ inner codec.Codec }

// FourCC implements codec.Codec.
func (labelled) FourCC() codec.FourCC { return fourCC }

// Name is "labels" for the registered codec, and says what is in it for others: "labels:draco".
func (l labelled) Name() string {
	if l.inner == nil {
		return "labels"
	}
	return "labels:" + l.inner.Name()
}

// Capabilities are those of the codec that codes the points.
func (l labelled) Capabilities() codec.Capabilities {
	can := l.coder().Capabilities()
	can.Ordered = false
	can.MaxPoints = min(can.MaxPoints, maxPoints)
	return can
}

// coder is what codes the points. It is looked up late: codecs register themselves in any order.
func (l labelled) coder() codec.Codec {
	if l.inner != nil {
		return l.inner
	}
	for _, name := range []string{"draco", "zstd"} {
		if c, err := codec.ByName(name); err == nil {
			return c
		}
	}
	return codec.Raw
}

func (l labelled) NewEncoder() codec.Encoder {
	c := l.coder()
	return &encoder{fourCC: c.FourCC(), inner: c.NewEncoder().(codec.OrderedEncoder)}
}

func (labelled) NewDecoder() codec.Decoder { return &decoder{} }
