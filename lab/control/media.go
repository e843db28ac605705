package control

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
)

// The publisher's traffic.
const (
	tiles         = 4
	levels        = 8
	frameRate     = 30
	frameInterval = time.Second / frameRate
	// step is the factor between two qualities. top is the rate of the highest quality of all tiles together, as a
	// multiple of the link's rate.
	step = 1.5
	top  = 1.2
	// uplinkStep is the factor in cases with a bottleneck at the publisher. A publisher raises its tiles evenly and
	// keeps 5 % of the estimate free. With a factor of 1.5, a step of one of four tiles is up to 11 % of the rate, more
	// than the tenth of the link that the claim leaves; with 1.2 it is 5 %.
	uplinkStep = 1.2
	// variation is the largest relative deviation of a frame's size from the mean.
	variation = 0.2
	// captureJitter bounds the delay of a capture after its planned time: cameras keep their clock, encoding hosts do
	// not.
	captureJitter = 4 * time.Millisecond
	// measuredFrames is the window of the track rate, in frames: one second.
	measuredFrames = frameRate
	// clockRate is the rate of RTP timestamps, in Hz.
	clockRate = 90_000
)

// timestamp returns the RTP timestamp of a capture time.
func timestamp(captured time.Duration) uint32 { return uint32(captured * clockRate / time.Second) }

// ladder holds the nominal rate of each quality of a tile, in payload bits per second, ascending.
type ladder [levels]float64

// step returns the factor between two qualities in the case.
func (s *scenario) step() float64 {
	if s.uplink {
		return uplinkStep
	}
	return step
}

// ladder returns the ladder of the case's publishers, whose highest qualities add up to 1.2 times the largest rate of
// the link over all tiles.
func (s *scenario) ladder() ladder {
	var l ladder
	for q := range l {
		l[q] = top * float64(s.trace.Max()) / tiles / math.Pow(s.step(), float64(levels-1-q))
	}
	return l
}

// best returns the highest total rate that fits into the rate wire, in payload bits per second, if tiles differ by at
// most one step or are off. The allocator may set tiles further apart and fit a little more.
func (l *ladder) best(wire float64) float64 {
	budget := wire * fragmentSize / (fragmentSize + congestion.PacketOverhead)
	best := 0.0
	for q := range levels {
		for higher := 1; higher <= tiles; higher++ {
			sum := float64(higher) * l[q]
			if q > 0 {
				sum += float64(tiles-higher) * l[q-1]
			}
			if sum <= budget {
				best = max(best, sum)
			}
		}
	}
	return best
}

// publisher makes frames. The content of a tile scales its frames equally at all qualities.
type publisher struct {
	ladder  ladder
	random  *rand.Rand
	number  int64 // of the next frame
	planned time.Duration
	next    time.Duration // when the next frame is captured
	factors [tiles][measuredFrames]float64
}

func newPublisher(l ladder, random *rand.Rand) *publisher {
	p := &publisher{ladder: l, random: random}
	for t := range p.factors {
		for i := range p.factors[t] {
			p.factors[t][i] = 1
		}
	}
	return p
}

// capture makes a frame of all tiles and returns the frame's number; size then returns the sizes of that frame.
func (p *publisher) capture() (number int64) {
	number = p.number
	for t := range p.factors {
		p.factors[t][number%measuredFrames] = 1 + variation*(2*p.random.Float64()-1)
	}
	p.number++
	p.planned += frameInterval
	p.next = p.planned + time.Duration(p.random.Int64N(int64(captureJitter)))
	return number
}

// size returns the payload of the newest frame of a tile at a quality, in bytes.
func (p *publisher) size(tile, quality int) int {
	return max(1, int(p.ladder[quality]*p.factors[tile][(p.number-1)%measuredFrames]/8/frameRate))
}

// rate returns the rate of the track of a tile and quality over the last second, as the server measures it, in bit/s.
func (p *publisher) rate(tile, quality int) float64 {
	sum := 0.0
	for _, f := range p.factors[tile] {
		sum += f
	}
	return p.ladder[quality] * sum / measuredFrames
}
