package board

import (
	"cmp"
	"math"
	"slices"
)

// saddle is a place at which two dark and two bright quadrants meet.
type saddle struct {
	x, y     float64
	strength float64
	// first and second are directions of the edges, in radians. The quadrant from first to second, turning from x to y,
	// is bright, and so is the opposite one.
	first, second float64
}

const (
	// saddleBlur is the standard deviation in pixels of the blur before derivatives are taken: it suppresses noise and
	// keeps corners of squares of 8 pixels.
	saddleBlur = 1.3
	// ring is the radius in pixels on which the quadrants are checked.
	ring        = 3.5
	ringSamples = 32
	// leastContrast is the least difference of dark and bright quadrants, in grey levels of 255.
	leastContrast = 10
	// mostSaddles bounds the work on pictures with much texture.
	mostSaddles = 3000
	// weakest is the least strength of a saddle relative to the strongest one. The strength is quadratic in the
	// contrast.
	weakest = 0.003
)

// saddles returns the saddles of a picture, the strongest first.
func saddles(g *Gray) []saddle {
	if g.Width < 16 || g.Height < 16 {
		return nil
	}
	s := g.smooth(saddleBlur)
	w := s.Width
	strength := make([]float32, len(s.Pixels))
	most := float32(0)
	for y := 1; y < s.Height-1; y++ {
		for x := 1; x < w-1; x++ {
			i := y*w + x
			p := s.Pixels[i-w-1 : i+w+2]
			xx := p[w] - 2*p[w+1] + p[w+2]
			yy := p[1] - 2*p[w+1] + p[2*w+1]
			xy := (p[2*w+2] - p[2*w] - p[2] + p[0]) / 4
			strength[i] = xy*xy - xx*yy
			most = max(most, strength[i])
		}
	}
	var found []saddle
	const margin = 5 // the ring, and the pixels around its samples
	for y := margin; y < s.Height-margin; y++ {
		for x := margin; x < w-margin; x++ {
			value := strength[y*w+x]
			if value > weakest*most && strongest(strength, w, x, y) {
				if c, ok := s.saddleAt(x, y, float64(value)); ok {
					found = append(found, c)
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b saddle) int { return cmp.Compare(b.strength, a.strength) })
	return found[:min(len(found), mostSaddles)]
}

// strongest reports whether no pixel nearby is stronger.
func strongest(strength []float32, width, x, y int) bool {
	const radius = 2
	for v := y - radius; v <= y+radius; v++ {
		for u := x - radius; u <= x+radius; u++ {
			other, own := strength[v*width+u], strength[y*width+x]
			if other > own || other == own && (v < y || v == y && u < x) {
				return false
			}
		}
	}
	return true
}

// saddleAt returns the saddle at a pixel of a smoothed picture, if there is one.
func (g *Gray) saddleAt(x, y int, strength float64) (saddle, bool) {
	value := func(u, v int) float64 { return float64(g.Pixels[(y+v)*g.Width+x+u]) }
	dx, dy := (value(1, 0)-value(-1, 0))/2, (value(0, 1)-value(0, -1))/2
	xx := value(1, 0) - 2*value(0, 0) + value(-1, 0)
	yy := value(0, 1) - 2*value(0, 0) + value(0, -1)
	xy := (value(1, 1) - value(-1, 1) - value(1, -1) + value(-1, -1)) / 4
	determinant := xx*yy - xy*xy
	if determinant >= 0 {
		return saddle{}, false
	}
	u, v := -(yy*dx-xy*dy)/determinant, -(xx*dy-xy*dx)/determinant
	if math.Abs(u) > 1.5 || math.Abs(v) > 1.5 {
		return saddle{}, false
	}
	c := saddle{x: float64(x) + u, y: float64(y) + v, strength: strength}
	// Along an edge the second derivative is zero: xx cos² + 2 xy cos sin + yy sin² = 0, where the cosine and the sine
	// of twice the angle have the amplitude a and the phase.
	half, mean := (xx-yy)/2, (xx+yy)/2
	a, phase := math.Hypot(half, xy), math.Atan2(xy, half)
	width := math.Acos(min(max(-mean/a, -1), 1))
	// The second derivative is positive, and the quadrant bright, between the two angles around the phase.
	c.first, c.second = (phase-width)/2, (phase+width)/2
	return c, g.quadrants(c)
}

// quadrants reports whether the ring around a saddle has two bright and two dark parts, opposite ones alike.
func (g *Gray) quadrants(c saddle) bool {
	var samples [ringSamples]float64
	low, high := math.Inf(1), math.Inf(-1)
	for i := range samples {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / ringSamples)
		samples[i] = g.at(c.x+ring*cos, c.y+ring*sin)
		low, high = min(low, samples[i]), max(high, samples[i])
	}
	if high-low < leastContrast {
		return false
	}
	middle := (low + high) / 2
	changes := 0
	alike, all := 0.0, 0.0
	for i := range samples {
		if (samples[i] > middle) != (samples[(i+1)%ringSamples] > middle) {
			changes++
		}
		alike += (samples[i] - middle) * (samples[(i+ringSamples/2)%ringSamples] - middle)
		all += (samples[i] - middle) * (samples[i] - middle)
	}
	return changes == 4 && alike > 0.6*all
}
