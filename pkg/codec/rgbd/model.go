package rgbd

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

// freshModel contains the probabilities at the start of a tile. A pixel of the mask is expected to be as most of the
// four nearest neighbours are.
var freshModel = func() *model {
	m := new(model)
	forget(m.mixed[:])
	forget(m.all[:])
	for context := range m.pixels {
		zero := maskStarts[context>>maskWest&1+context>>maskNorth&1+context>>(maskNorth+1)&1+context>>(maskNorth-1)&1]
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
	return m
}()

// maskStarts contains the first probability that a pixel has no depth, by the number of its four nearest neighbours
// with a depth: 15/16, 3/4, 1/2, 1/4, 1/16.
var maskStarts = [5]uint16{61440, 49152, half, 16384, 4096}

// The context of a pixel of the mask has a bit for each of ten neighbours, from the highest: NNW, NN, NNE, then NWW,
// NW, N, NE, NEE, then WW and W. A shift moves each group to the next pixel.
const (
	maskWest  = 0
	maskNorth = 4
	maskAbove = 2
	maskTop   = 7
)

// maskContext returns the context of the three groups, whose bits beyond the group are ignored.
func maskContext(west, above, top uint32) uint32 {
	return west&3 | above&31<<maskAbove | top&7<<maskTop
}

// mark is the state of a coded pixel for its neighbours' contexts: bit 0 is set if the pixel has a depth, bits 1 and 2
// contain the sign of its residual, 1 for positive and 2 for negative, and the bits above the residual's size. A pixel
// without a depth has the mark 0.
type mark uint32

const (
	markDepth = 1
	signShift = 1
	signMask  = 3
	sizeShift = 3
)

// markOf returns the mark of a pixel with a residual.
func markOf(residual int32) mark {
	sign := mark(0)
	if residual > 0 {
		sign = 1
	}
	if residual < 0 {
		sign = 2
	}
	return mark(max(residual, -residual))<<sizeShift | sign<<signShift | markDepth
}

// contextOf returns the context of a residual by the marks of four neighbours.
func contextOf(west, north, corner, right mark) uint32 {
	activity := 2*(west>>sizeShift+north>>sizeShift) + corner>>sizeShift + right>>sizeShift
	context := uint32(levelOf[min(activity, mostActivity)])
	if west&north&corner&right&markDepth == 0 {
		context += levels
	}
	return context
}

// signsOf returns the context of the sign of a residual by the marks of two neighbours.
func signsOf(west, north mark) mark { return 3*(west>>signShift&signMask) + north>>signShift&signMask }

// patternOf returns which neighbours of a pixel have equal codes.
func patternOf(west, north, corner, right int32) (pattern uint32) {
	if north == corner {
		pattern = 1
	}
	if west == corner {
		pattern |= 2
	}
	if north == right {
		pattern |= 4
	}
	return pattern
}

// median returns the median of west, north and the plane through the three neighbours, as in JPEG-LS (Weinberger,
// Seroussi and Sapiro, "The LOCO-I lossless image compression algorithm", 2000).
func median(west, north, corner int32) int32 {
	return max(min(west, north), min(max(west, north), west+north-corner))
}

// edgePrediction returns the prediction of a pixel one of whose neighbours W, N and NW has no depth. last is the code
// of the pixel coded before.
func edgePrediction(codes [4]int32, marks [4]mark, last int32) int32 {
	for i, m := range marks {
		if m != 0 {
			return codes[i]
		}
	}
	return last
}
