// Package codec turns point clouds into the bytes of a frame and back. Codecs register themselves
// by FourCC; a frame names its codec, so a receiver needs no configuration. Encoders and decoders
// are values without shared state: each is used by one goroutine at a time.
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

// Params says how one quality is encoded. What a codec has no use for it ignores; its Capabilities tell.
type Params struct {
	// PositionBits is the number of bits per coordinate, 1 to 30: a box edge is cut into 2^bits-1 steps.
	PositionBits int
	// Speed trades size for time, 0 (smallest) to 10 (fastest): Draco's scale, for all codecs.
	// Compression levels as papers count them are 10 - Speed.
	Speed int
	// Box is the cube or box that positions are quantised in. All tiles and qualities of a
	// publication share it, so that their grids line up; its longest edge sets the step. Points
	// outside are clamped to it.
	Box volumetric.BoundingBox
	// NoColors leaves the colours out: the cloud needs none to be encoded, and is White when it is decoded.
	NoColors bool
	// Sequential keeps the points in their order, where the codec has a method that does (Draco's
	// sequential coding instead of its kd-tree).
	Sequential bool
	// ColorQuality is the quality of colours that are coded with loss, 1 to 100 as JPEG counts it;
	// 0 is DefaultColorQuality.
	ColorQuality int
}

// DefaultColorQuality is the ColorQuality of parameters that leave it 0.
const DefaultColorQuality = 85

// White is the colour of all points of a frame that was encoded without colours.
var White = [3]uint8{255, 255, 255}

// Encoder makes one frame from one cloud.
type Encoder interface {
	// Encode appends the encoded cloud to dst. A cloud without points gives dst unchanged: a tile
	// without points is a frame of length 0. Parameters or clouds that cannot be encoded give dst
	// unchanged and an error around ErrParams.
	Encode(dst []byte, cloud *pointcloud.Cloud, params Params) ([]byte, error)
}

// OrderedEncoder is an Encoder that tells in which order a frame has the points, so that what is
// known of them can travel beside the frame. The encoders of codecs whose Capabilities say Ordered
// are such.
type OrderedEncoder interface {
	Encoder
	// EncodeOrdered is Encode, and replaces order by where the points of the decoded frame stand in
	// the cloud: decoded point i is the cloud's point order[i].
	EncodeOrdered(
		dst []byte,
		order []uint32,
		cloud *pointcloud.Cloud,
		params Params,
	) (frame []byte, newOrder []uint32, err error)
}

// AppendIdentity appends the order of a codec that keeps the points in theirs: 0, 1, 2 and so on.
func AppendIdentity(order []uint32, points int) []uint32 {
	for i := range points {
		order = append(order, uint32(i))
	}
	return order
}

// Decoder makes a cloud from one frame.
type Decoder interface {
	// Decode replaces the cloud's points by those of the frame, with as many colours as positions.
	// Malformed data gives an error around ErrMalformed and an empty cloud; so does a frame with
	// frames of a codec in it that this program has not, around ErrUnknown.
	Decode(cloud *pointcloud.Cloud, data []byte) error
}

// Announcer is a Decoder that reads from the head of a frame how many points the frame has. Codecs whose frames
// contain frames of another codec check that number before they decode anything.
type Announcer interface {
	Decoder
	// Announced returns the number of points that a frame announces, which is at most MostPoints of its bytes;
	// decoding gives as many, or fewer if some have no place. Announced allocates nothing for the points. Errors wrap
	// ErrMalformed, or ErrUnknown for a frame of a codec that this program does not have.
	Announced(data []byte) (int, error)
}

// Codec makes encoders and decoders.
type Codec interface {
	FourCC() FourCC
	// Name is how people ask for it, for instance "draco".
	Name() string
	Capabilities() Capabilities
	NewEncoder() Encoder
	NewDecoder() Decoder
}
