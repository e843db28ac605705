package gallery

import (
	"math/rand/v2"

	"github.com/volsfu/volsfu/internal/peer/picture"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// keySize is the size of a key frame relative to the mean size of frames.
	keySize = 8
	// variation is the largest deviation of a frame from the mean size, as a share of the mean.
	variation = 0.2
)

// encoder is a model of an encoder of VP8 with a constant rate. Its frames have the header of real ones and random
// contents. A key frame is large, and the frames after it are smaller until the mean is reached again.
type encoder struct {
	mean   float64 // bytes per frame
	debt   float64 // bytes above the mean so far
	random *rand.Rand
}

// newEncoder returns an encoder of one quality.
func newEncoder(level *volumetric.QualityLevel, seed uint64) *encoder {
	return &encoder{mean: float64(level.Bitrate) / 8 / level.FrameRate, random: rand.New(rand.NewPCG(seed, 0))}
}

// smallest is the size of the header of a key frame, in bytes.
const smallest = 10

// Next implements picture.Source.
func (e *encoder) Next(key bool) picture.Frame {
	size := e.mean * (1 + variation*(2*e.random.Float64()-1))
	if key {
		size = e.mean * keySize
	}
	// A second of frames repays a key frame: a quarter of each frame.
	repaid := min(e.debt, size/4)
	size = max(size-repaid, smallest)
	e.debt = max(e.debt+size-e.mean, 0)
	frame := make([]byte, int(size))
	for i := range frame {
		frame[i] = byte(e.random.Uint32())
	}
	if key {
		copy(frame, []byte{0x10, 2, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xb4, 0})
	} else {
		frame[0] = 0x31
	}
	return picture.Frame{Data: frame, Key: key}
}
