// Package parts is the codec "parts" (FourCC "part"): a cloud coded by another codec in several
// parts, on as many threads, and decoded so. On one grid, parts that are slabs of space cost next
// to nothing: 100,000 points of a real capture at 11 bits take 25.1 bits per point in one Draco
// tree and 25.4 in four slabs, but 30.5 in four parts of points at random, since a tree codes where
// points are by telling them apart. So the cloud is cut into slabs across its longest axis, of as
// many points each, give or take a few percent; where Params.Sequential asks for the points in
// their order, it is cut as they stand.
//
// A frame has the sizes of all parts at its head, so that receivers decode all of them at once into
// where their points belong; all numbers are little-endian:
//
//	offset  size     what
//	0       4        FourCC of the codec that codes the parts
//	4       4        number of parts, 1 to 64
//	8       8·parts  for each: number of points, at least 1, then of bytes, at least 1
//	…       …        the parts, frames of that codec
//
// Work is done by the caller's goroutine together with helpers, goroutines that a Pool bounds; none
// is left once a call returns.
package parts

import (
	"fmt"
	"runtime"

	"github.com/volsfu/volsfu/pkg/codec"
)

// MaxParts is the largest number of parts in a frame.
const MaxParts = 64

// maxPoints bounds a frame's points.
const maxPoints = codec.MaxPoints

// leastPoints is what a part must have to be worth a thread: Draco codes 1,000 points in 0.1 ms,
// ten times what waking a thread takes.
const leastPoints = 1000

// fourCC is that of all codecs of this package.
var fourCC = codec.FourCC{'p', 'a', 'r', 't'}

// Pool bounds the helpers of all encoders and decoders that share it.
type Pool struct {
	slots chan struct{}
}

// NewPool makes a pool of so many helpers, which work beside the goroutines that encode and decode.
func NewPool(helpers int) *Pool { return &Pool{slots: make(chan struct{}, max(0, helpers))} }

// processors is the pool of what is not given another: with the caller, one goroutine per processor.
var processors = NewPool(runtime.GOMAXPROCS(0) - 1)

// Config says how clouds are coded. The zero value codes one part per processor by the best codec that there is.
type Config struct {
	// Inner codes the parts; nil is Draco, or zstd in a program that was built without Draco. It
	// must not be of this package.
	Inner codec.Codec
	// Parts is the number of parts, up to MaxParts, fewer for clouds of few points; 0 is one per processor.
	Parts int
	// Pool bounds the helpers; nil is the pool that all share, of one thread per processor.
	Pool *Pool
}

// New makes a codec. Its frames are decoded by every codec of this package, whatever codes the
// parts. It panics where Inner is of this package, or Parts is out of range: both are the program's
// own choice.
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

// Name is "parts" for the registered codec, and says what is in it for others: "parts:draco:3".
func (p parts) Name() string {
	if p.config.Inner == nil {
		return "parts"
	}
	return fmt.Sprintf("parts:%s:%d", p.config.Inner.Name(), p.config.Parts)
}

// Capabilities are those of the codec that codes the parts.
func (p parts) Capabilities() codec.Capabilities {
	can := p.inner().Capabilities()
	can.Ordered = false
	can.MaxPoints = min(can.MaxPoints, maxPoints)
	return can
}

// inner is what codes the parts. It is looked up late: codecs register themselves in any order.
func (p parts) inner() codec.Codec {
	if p.config.Inner != nil {
		return p.config.Inner
	}
	for _, name := range []string{"draco", "zstd"} {
		if c, err := codec.ByName(name); err == nil {
			return c
		}
	}
	return codec.Raw
}

func (p parts) NewEncoder() codec.Encoder { return newEncoder(p.inner(), p.config) }
func (p parts) NewDecoder() codec.Decoder { return newDecoder(p.config.Pool) }
