package rgbd

import "slices"

// grid is the raster of a tile while it is coded: depth codes, with a border that has no depth, so that every pixel has
// all neighbours of the contexts.
type grid struct {
	columns, rows int
	// stride is the distance of two rows, first the index of the first pixel.
	stride, first int
	// valid is 1 for pixels with a depth, codes the depths in steps from the nearest, and residuals the differences
	// from the prediction. All are 0 for other pixels.
	valid     []uint8
	codes     []int32
	residuals []int32
	// kinds contains the kind of each block, with a border of empty blocks to the left and above.
	kinds []uint8
}

const (
	// blockEdge is the edge of a block of the mask in pixels.
	blockEdge = 8
	// borderColumns and borderRows are the border that the contexts of a mask need.
	borderColumns = 2
	borderRows    = 2
	// mostCode is the largest depth code.
	mostCode = 1<<16 - 1
)

// The kinds of blocks.
const (
	blockNone = iota
	blockAll
	blockMixed
	blockKinds
)

// reset makes the grid an empty raster of the given size.
func (g *grid) reset(columns, rows int) {
	g.columns, g.rows = columns, rows
	g.stride = columns + 2*borderColumns
	g.first = borderRows*g.stride + borderColumns
	size := g.stride * (rows + borderRows)
	g.valid = zeroed(g.valid, size)
	g.codes = zeroed(g.codes, size)
	g.residuals = zeroed(g.residuals, size)
	across, down := g.blocks()
	g.kinds = zeroed(g.kinds, (across+1)*(down+1))
}

// zeroed returns a slice of zeros that reuses memory.
func zeroed[T any](s []T, size int) []T {
	s = slices.Grow(s[:0], size)[:size]
	clear(s)
	return s
}

// blocks returns the number of blocks in both directions.
func (g *grid) blocks() (across, down int) {
	return (g.columns + blockEdge - 1) / blockEdge, (g.rows + blockEdge - 1) / blockEdge
}

// row returns the index of the first pixel of a row.
func (g *grid) row(y int) int { return g.first + y*g.stride }

// model contains the probabilities of a tile's mask and depths.
type model struct {
	// mixed and all have the probabilities of a block's kind, by the kinds of the blocks to the left and above.
	mixed, all [blockKinds * blockKinds]probability
	// pixels has the probabilities of a pixel of a mixed block, by ten neighbours.
	pixels [1 << 10]probability
	// lengths has the probabilities of the unary code of a residual's number of bits, and mantissas those of the first
	// two bits behind the leading one, by the context.
	zeros     [8][contexts]probability
	lengths   [contexts][maxLength]probability
	mantissas [contexts][maxLength + 1][3]probability
	// signs has the probabilities of signs by the signs of the residuals to the left and above.
	signs [9]probability
}

const (
	// levels is the number of contexts by the size of the neighbouring residuals. The contexts of pixels at an edge
	// follow those of other pixels.
	levels   = 12
	contexts = 2 * levels
	// maxLength is the number of bits of the largest residual: 65,535.
	maxLength = 16
	// mostActivity is the sum of residuals from which on the level is the last.
	mostActivity = 100
)

// levelOf contains the level for each sum of neighbouring residuals up to mostActivity.
var levelOf = func() (of [mostActivity + 1]uint8) {
	level := uint8(0)
	begins := [levels]int{0, 1, 2, 3, 5, 7, 10, 14, 20, 30, 50, mostActivity}
	for activity := range of {
		for int(level) < levels-1 && activity >= begins[level+1] {
			level++
		}
		of[activity] = level
	}
	return of
}()

// reset sets the probabilities at the start of a tile. A pixel of the mask is expected to be as most of the four
// nearest neighbours are.
func (m *model) reset() {
	forget(m.mixed[:])
	forget(m.all[:])
	for context := range m.pixels {
		zero := maskStarts[context>>0&1+context>>1&1+context>>2&1+context>>3&1]
		m.pixels[context] = probability{zero, zero, 0}
	}
	for pattern := range m.zeros {
		forget(m.zeros[pattern][:])
	}
	for context := range m.lengths {
		forget(m.lengths[context][:])
		for length := range m.mantissas[context] {
			forget(m.mantissas[context][length][:])
		}
	}
	forget(m.signs[:])
}

// maskStarts contains the first probability that a pixel has no depth, by the number of its four nearest neighbours
// with a depth: 15/16, 3/4, 1/2, 1/4, 1/16.
var maskStarts = [5]uint16{61440, 49152, half, 16384, 4096}

// maskContext returns the context of a pixel of the mask: W, N, NW, NE in the lowest bits, then WW, NWW, NEE, NN, NNW
// and NNE.
func (g *grid) maskContext(at int) int {
	v, above, second := g.valid, at-g.stride, at-2*g.stride
	return int(v[at-1]) | int(v[above])<<1 | int(v[above-1])<<2 | int(v[above+1])<<3 |
		int(v[at-2])<<4 | int(v[above-2])<<5 | int(v[above+2])<<6 |
		int(v[second])<<7 | int(v[second-1])<<8 | int(v[second+1])<<9
}

// predict returns the prediction of a pixel's code and the context of its residual. last is the code of the pixel coded
// before. With all of W, N and NW the prediction is the median of W, N and W + N - NW, as in JPEG-LS (Weinberger,
// Seroussi and Sapiro, "The LOCO-I lossless image compression algorithm", 2000).
func (g *grid) predict(at int, last int32) (prediction int32, context int) {
	above := at - g.stride
	e := g.residuals
	activity := 2*(size(e[at-1])+size(e[above])) + size(e[above-1]) + size(e[above+1])
	context = int(levelOf[min(activity, mostActivity)])
	v, c := g.valid, g.codes
	if v[at-1]&v[above]&v[above-1]&v[above+1] != 0 {
		return median(c[at-1], c[above], c[above-1]), context
	}
	context += levels
	switch {
	case v[at-1]&v[above]&v[above-1] != 0:
		return median(c[at-1], c[above], c[above-1]), context
	case v[at-1] != 0:
		return c[at-1], context
	case v[above] != 0:
		return c[above], context
	case v[above+1] != 0:
		return c[above+1], context
	case v[above-1] != 0:
		return c[above-1], context
	}
	return last, context
}

// size returns the absolute value of a residual.
func size(v int32) int32 { return max(v, -v) }

// median returns the median of west, north and the plane through the three neighbours.
func median(west, north, corner int32) int32 {
	return max(min(west, north), min(max(west, north), west+north-corner))
}

// signContext returns the context of the sign of a pixel's residual.
func (g *grid) signContext(at int) int {
	return 3*sign(g.residuals[at-1]) + sign(g.residuals[at-g.stride])
}

// sign returns 0 for 0, 1 for positive and 2 for negative values.
func sign(v int32) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return 2
	}
	return 0
}

// pattern returns which neighbours of a pixel have equal codes.
func (g *grid) pattern(at int) (pattern int) {
	c, above := g.codes, at-g.stride
	if c[above] == c[above-1] {
		pattern |= 1
	}
	if c[at-1] == c[above-1] {
		pattern |= 2
	}
	if c[above] == c[above+1] {
		pattern |= 4
	}
	return pattern
}
