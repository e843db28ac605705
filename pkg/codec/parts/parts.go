// Package parts implements the codec "parts" (FourCC "part"): a cloud coded by another codec in
// several parts, which are encoded and decoded on several threads. On a common grid, parts that are
// slabs of space cost next to nothing: 100,000 points of a real capture at 11 bits take 25.1 bits
// per point in one Draco tree, 25.4 in four slabs, but 30.5 in four parts of random points, because
// a tree codes positions by distinguishing points. Therefore the cloud is divided into slabs along
// its longest axis, with equal numbers of points to within a few percent. With Params.Sequential
// the cloud is divided in the order of its points.
//
// The head of a frame contains the sizes of all parts, so that receivers decode all parts
// concurrently to their final position in memory. All numbers are little-endian:
//
//	offset  size     content
//	0       4        FourCC of the codec of the parts
//	4       4        number of parts, 1 to 64
//	8       8·parts  for each part: number of points, at least 1, then number of bytes, at least 1
//	…       …        the parts, frames of that codec
//
// The caller's goroutine does the work together with helper goroutines, whose number is limited by
// a Pool. All helpers have ended when a call returns.
package parts

import (
	"fmt"
	"runtime"

	"github.com/volsfu/volsfu/pkg/codec"
)

// MaxParts is the maximum number of parts in a frame.
const MaxParts = 64

// maxPoints is the maximum number of points of a frame.
const maxPoints = codec.MaxPoints

// leastPoints is the minimum number of points of a part that is worth a thread. Draco codes 1,000
// points in 0.1 ms, ten times as long as it takes to wake a thread.
const leastPoints = 1000

// fourCC is the FourCC of all codecs of this package.
var fourCC = codec.FourCC{'p', 'a', 'r', 't'}

// Pool limits the number of helpers of all encoders and decoders that share it.
type Pool struct {
	slots chan struct{}
}

// NewPool returns a pool of helpers, which work in addition to the goroutines that encode and
// decode.
func NewPool(helpers int) *Pool { return &Pool{slots: make(chan struct{}, max(0, helpers))} }

// processors is the default pool: with the caller, one goroutine per processor.
var processors = NewPool(runtime.GOMAXPROCS(0) - 1)

// Config describes the coding of clouds. The zero value uses one part per processor and the best
// codec available.
type Config struct {
	// Inner is the codec of the parts. nil means Draco, or zstd in a program built without Draco.
	// Inner must not be a codec of this package.
	Inner codec.Codec
	// Parts is the number of parts, at most MaxParts; clouds of few points have fewer. 0 means one
	// per processor.
	Parts int
	// Pool limits the helpers. nil means the shared pool with one thread per processor.
	Pool *Pool
}

// New returns a codec. Every codec of this package decodes its frames, whatever the inner codec.
// New panics if Inner is a codec of this package or Parts is out of range, because both are chosen
// by the program.
func New(c Config) codec.Codec {
	if c.Inner != nil && c.Inner.FourCC() == fourCC || c.Parts < 0 || c.Parts > MaxParts {
		panic(fmt.Sprintf("parts: %+v: expected 0 to %d parts of another codec", c, MaxParts))
	}
	if c.Parts == 0 {
		c.Parts = min(MaxParts, runtime.GOMAXPROCS(0))
	}
	if c.Pool == nil {
		c.Pool = processors
	}
	return parts{c}
}

func init() { codec.Register(New(Config{})) }

type parts struct{ config Config }

func (parts) FourCC() codec.FourCC { return fourCC }

// Name returns "parts" for the registered codec, and includes inner codec and number of parts for
// others: "parts:draco:3".
func (p parts) Name() string {
	if p.config.Inner == nil {
		return "parts"
	}
	return fmt.Sprintf("parts:%s:%d", p.config.Inner.Name(), p.config.Parts)
}

// Capabilities returns the capabilities of the codec of the parts.
func (p parts) Capabilities() codec.Capabilities {
	can := p.inner().Capabilities()
	can.Ordered = false
	can.MaxPoints = min(can.MaxPoints, maxPoints)
	return can
}

// inner returns the codec of the parts. The lookup is late because codecs register themselves in
// any order.
func (p parts) inner() codec.Codec {
	if p.config.Inner != nil {
		return p.config.Inner
	}
	for _, name := range []string{"draco", "zstd"} {
		if c, err := codec.ByName(name); err == nil && c.Capabilities().Encodes {
			return c
		}
	}
	return codec.Raw
}

func (p parts) NewEncoder() codec.Encoder { return newEncoder(p.inner(), p.config) }
func (p parts) NewDecoder() codec.Decoder { return newDecoder(p.config.Pool) }
