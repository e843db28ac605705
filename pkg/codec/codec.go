// Package codec encodes point clouds to frames and decodes them. Codecs register themselves by
// FourCC. A frame names its codec, so that a receiver needs no configuration. Encoders and decoders
// share no state; each is used by one goroutine at a time.
package codec

import (
	"errors"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of the registry and of decoding. The wrapping error contains the codec and the cause.
var (
	ErrUnknown   = errors.New("codec not available")
	ErrMalformed = errors.New("malformed frame")
	ErrParams    = errors.New("invalid codec parameters")
)

// FourCC identifies a codec in a frame.
type FourCC = volumetric.FourCC

// Params contains the encoding parameters of one quality. A codec ignores the parameters that it
// does not use; its Capabilities report which.
type Params struct {
	// PositionBits is the number of bits per coordinate, 1 to 30. The longest edge of Box is
	// divided into 2^bits-1 steps.
	PositionBits int
	// Speed selects between size and time, from 0 (smallest) to 10 (fastest), on Draco's scale for
	// all codecs. The compression level in papers is 10 - Speed.
	Speed int
	// Box is the box in which positions are quantized. All tiles and qualities of a publication
	// share the box, so that their grids coincide. Its longest edge determines the step. Points
	// outside are clamped to the box.
	Box volumetric.BoundingBox
	// NoColors omits the colours: the cloud then needs none to be encoded, and all its points are
	// White when decoded.
	NoColors bool
	// Sequential keeps the order of the points if the codec supports this (Draco's sequential
	// coding instead of its kd-tree).
	Sequential bool
	// ColorQuality is the quality of lossy colours on the scale of JPEG, 1 to 100; 0 means
	// DefaultColorQuality.
	ColorQuality int
}

// DefaultColorQuality is the colour quality if ColorQuality is 0.
const DefaultColorQuality = 85

// White is the colour of all points of a frame that was encoded without colours.
var White = [3]uint8{255, 255, 255}

// Encoder encodes one cloud as one frame.
type Encoder interface {
	// Encode appends the encoded cloud to dst. For a cloud without points dst is returned
	// unchanged: a tile without points is a frame of length 0. If the parameters or the cloud
	// cannot be encoded, dst is returned unchanged and the error wraps ErrParams.
	Encode(dst []byte, cloud *pointcloud.Cloud, params Params) ([]byte, error)
}

// OrderedEncoder is an Encoder that reports the order of the points in the frame, so that other attributes of the
// points can be sent with the frame. An OrderedEncoder is implemented by the encoders of codecs whose Capabilities are
// Ordered.
type OrderedEncoder interface {
	Encoder
	// EncodeOrdered encodes as Encode does and replaces order by the indices of the points: point i
	// of the decoded frame is point order[i] of the cloud.
	EncodeOrdered(
		dst []byte,
		order []uint32,
		cloud *pointcloud.Cloud,
		params Params,
	) (frame []byte, newOrder []uint32, err error)
}

// AppendIdentity appends the order of a codec that keeps the order of the points: 0, 1, 2 and so
// on.
func AppendIdentity(order []uint32, points int) []uint32 {
	for i := range points {
		order = append(order, uint32(i))
	}
	return order
}

// Decoder decodes one frame to one cloud.
type Decoder interface {
	// Decode replaces the cloud's points by the points of the frame, with as many colours as
	// positions. For malformed data the error wraps ErrMalformed and the cloud is empty. If the
	// frame contains frames of a codec that this program does not have, the error wraps ErrUnknown
	// and the cloud is empty.
	Decode(cloud *pointcloud.Cloud, data []byte) error
}

// Announcer is a Decoder that reads the number of points from the head of a frame. Codecs whose
// frames contain frames of another codec check this number before they decode anything.
type Announcer interface {
	Decoder
	// Announced returns the number of points that a frame announces, at most MostPoints of its
	// size. Decoding yields this number, or fewer if some points have no position. Announced
	// allocates no memory for the points. Errors wrap ErrMalformed, or ErrUnknown for a frame of a
	// codec that this program does not have.
	Announced(data []byte) (int, error)
}

// Codec creates encoders and decoders.
type Codec interface {
	FourCC() FourCC
	// Name is the name that users specify, for example "draco".
	Name() string
	Capabilities() Capabilities
	NewEncoder() Encoder
	NewDecoder() Decoder
}
