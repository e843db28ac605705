// Package codec turns point clouds into the bytes of a frame and back. Codecs register themselves by FourCC; a frame names its codec, so a
// receiver needs no configuration. Encoders and decoders are values without shared state: each is used by one goroutine at a time.
package codec

import (
	"errors"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of the registry and of decoding. They are wrapped with the codec and the cause.
var (
	ErrUnknown   = errors.New("codec not available")
	ErrMalformed = errors.New("malformed frame")
	ErrParams    = errors.New("invalid codec parameters")
)

// FourCC names a codec in a frame.
type FourCC = volumetric.FourCC

// Params says how one quality is encoded.
type Params struct {
	// PositionBits is the number of bits per coordinate, 1 to 30: a box edge is cut into 2^bits-1 steps.
	PositionBits int
	// Speed trades size for time, 0 (smallest) to 10 (fastest).
	Speed int
	// Box is the cube or box that positions are quantised in. All tiles and qualities of a publication share it, so that their grids
	// line up; its longest edge sets the step. Points outside are clamped to it.
	Box volumetric.BoundingBox
}

// Encoder makes one frame from one cloud.
type Encoder interface {
	// Encode appends the encoded cloud to dst. A cloud without points gives dst unchanged: a tile without points is a frame of length 0.
	Encode(dst []byte, cloud *pointcloud.Cloud, params Params) ([]byte, error)
}

// Decoder makes a cloud from one frame.
type Decoder interface {
	// Decode replaces the cloud's points by those of the frame. Malformed data gives an error around ErrMalformed and an empty cloud.
	Decode(cloud *pointcloud.Cloud, data []byte) error
}

// Codec makes encoders and decoders.
type Codec interface {
	FourCC() FourCC
	// Name is how people ask for it, for instance "draco".
	Name() string
	NewEncoder() Encoder
	NewDecoder() Decoder
}
