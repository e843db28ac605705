package virtual

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Noise contains the errors of a sensor. The zero Noise has none.
type Noise struct {
	// White is the standard deviation of each depth in millimetres. Growing is a further standard deviation, stated for
	// 1 m, that grows with the square of the depth, as that of stereo cameras. Both are independent.
	White   float64 `yaml:"white_mm"`
	Growing float64 `yaml:"growing_mm"`
	// Dropped and Flying are the shares of the pixels at the edge of a surface that have no depth, or a depth between
	// the surface and the one behind it.
	Dropped float64 `yaml:"dropped_edges"`
	Flying  float64 `yaml:"flying_pixels"`
}

func (n Noise) validate() error {
	for _, v := range []struct {
		key   string
		value float64
	}{{"white_mm", n.White}, {"growing_mm", n.Growing}} {
		if !(v.value >= 0 && v.value <= maxNoise) {
			return fmt.Errorf("noise: %s is %g, expected 0 to %d millimetres", v.key, v.value, maxNoise)
		}
	}
	if !(n.Dropped >= 0 && n.Flying >= 0 && n.Dropped+n.Flying <= 1) {
		return fmt.Errorf("noise: dropped_edges is %g and flying_pixels %g, expected shares of at most 1 together",
			n.Dropped, n.Flying)
	}
	return nil
}

const (
	// edgeRatio is the relative depth step between neighbouring pixels above which there is an edge.
	edgeRatio = 0.02
	// behind is the greatest distance in metres of a flying pixel from the surface if nothing is behind it.
	// Time-of-flight cameras see some light of a far background.
	behind = 0.1
)

// sensor adds noise to depths.
type sensor struct {
	noise  Noise
	source rand.PCG
	random *rand.Rand
	clean  []float32
}

func newSensor(noise Noise) *sensor {
	s := &sensor{noise: noise}
	s.random = rand.New(&s.source)
	return s
}

// apply adds the noise of one frame to depths in metres, 0 for none. The noise is a function of both seeds.
func (s *sensor) apply(depths []float32, width int, seed, frame uint64) {
	if s.noise == (Noise{}) {
		return
	}
	s.source.Seed(seed, frame)
	if s.noise.Dropped+s.noise.Flying > 0 {
		s.disturbEdges(depths, width)
	}
	white, growing := s.noise.White/1000, s.noise.Growing/1000
	if white+growing == 0 {
		return
	}
	for i, z := range depths {
		if z == 0 {
			continue
		}
		deviation := white
		if growing > 0 {
			deviation = math.Hypot(white, growing*float64(z)*float64(z))
		}
		depths[i] = max(0, z+float32(deviation*s.random.NormFloat64()))
	}
}

// disturbEdges drops or moves pixels at edges.
func (s *sensor) disturbEdges(depths []float32, width int) {
	s.clean = append(s.clean[:0], depths...)
	for i, z := range s.clean {
		if z == 0 {
			continue
		}
		next, edge := s.beyond(i, width, z)
		if !edge {
			continue
		}
		chance, along := s.random.Float64(), float32(s.random.Float64())
		switch {
		case chance < s.noise.Dropped:
			depths[i] = 0
		case chance < s.noise.Dropped+s.noise.Flying:
			depths[i] = z + along*(next-z)
		}
	}
}

// beyond reports whether a pixel is at the edge of its surface, and returns the depth behind the edge: that of the
// farthest neighbour, or a distance that the sensor might see without any.
func (s *sensor) beyond(pixel, width int, z float32) (next float32, edge bool) {
	next = z
	x := pixel % width
	for _, n := range [4]struct {
		at     int
		inside bool
	}{{pixel - 1, x > 0}, {pixel + 1, x < width-1}, {pixel - width, pixel >= width},
		{pixel + width, pixel+width < len(s.clean)}} {
		if !n.inside {
			continue
		}
		switch other := s.clean[n.at]; {
		case other == 0:
			next, edge = max(next, z+behind), true
		case other > z*(1+edgeRatio):
			next, edge = max(next, other), true
		}
	}
	return next, edge
}
