// Package labels implements the codec "labels" (FourCC "labl"): a cloud coded by another codec,
// plus the attributes that the other codec does not preserve: the labels of the points and the
// cameras that saw them. Both attributes are stored in the order in which the other codec decodes
// the points. In this order neighbours follow each other and mostly have equal labels. The
// attributes are compressed by Zstandard. The package itself needs no cgo.
//
// All numbers of a frame are little-endian:
//
//	offset  size  content
//	0       4     FourCC of the codec of the points
//	4       4     size g of the inner frame in bytes, at least 1
//	8       4     number of points n, at least 1
//	12      1     attributes: bit 0 for labels, bit 1 for sources
//	13      g     the inner frame
//	13+g    rest  if there are attributes, one Zstandard frame of planes of n bytes: low bytes of labels,
//	              high bytes of labels, low bytes of sources, high bytes of sources
//
// Encoders and decoders keep their memory; each is used by one goroutine at a time.
package labels

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

// fourCC is the FourCC of all codecs of this package.
var fourCC = codec.FourCC{'l', 'a', 'b', 'l'}

// Flags of the attributes.
const (
	hasLabels  = 1
	hasSources = 2
)

// headerBytes is the size of the head before the inner frame.
const headerBytes = 13

// maxPoints is the maximum number of points of a frame.
const maxPoints = codec.MaxPoints

// New returns a codec whose points are coded by inner. If inner is nil, the codec is Draco, or zstd
// in a program built without Draco. Every codec of this package decodes the frames. If inner does
// not report the order of its points (see Capabilities), the error wraps codec.ErrUnknown.
func New(inner codec.Codec) (codec.Codec, error) {
	if inner != nil && (inner.FourCC() == fourCC || !inner.Capabilities().Ordered) {
		return nil, fmt.Errorf(
			"%w: labels of %s, which does not tell the order of its points",
			codec.ErrUnknown,
			inner.Name(),
		)
	}
	return labelled{inner}, nil
}

func init() { codec.Register(labelled{}) }

// labelled is the codec around another codec; nil means the best one available.
type labelled struct{ inner codec.Codec }

// FourCC implements codec.Codec.
func (labelled) FourCC() codec.FourCC { return fourCC }

// Name returns "labels" for the registered codec, and includes the inner codec for others:
// "labels:draco".
func (l labelled) Name() string {
	if l.inner == nil {
		return "labels"
	}
	return "labels:" + l.inner.Name()
}

// Capabilities returns the capabilities of the codec of the points.
func (l labelled) Capabilities() codec.Capabilities {
	can := l.coder().Capabilities()
	can.Ordered = false
	can.MaxPoints = min(can.MaxPoints, maxPoints)
	return can
}

// coder returns the codec of the points. The lookup is late because codecs register themselves in
// any order.
func (l labelled) coder() codec.Codec {
	if l.inner != nil {
		return l.inner
	}
	for _, name := range []string{"draco", "zstd"} {
		if c, err := codec.ByName(name); err == nil && c.Capabilities().Encodes {
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
