package allocate

import "math"

// The value of a level of a picture is a share of the value of its panel: the product of a function of the pixels and a
// function of the frame rate, both relative to the best that the receiver can see. The form of both is that of the
// Q-STAR model (Ou, Xue and Wang, IEEE Transactions on Image Processing 23, 2014): ratings of videos in different
// resolutions are products of inverted exponentials of powers of the number of pixels and of the frame rate.
//
//	s(d) = (1 - exp(-α·d^β)) / (1 - exp(-α))
//
// For pixels, d is the number of pixels of the level, at most those that the receiver sees, relative to those that the
// receiver sees: the number of pixels that the whole panel covers in the receiver's view, or of the highest level if
// that is less. Pixels beyond those have no value, as with points (see utility).
const (
	// Half the width and height of a camera's picture have the value 0.74, a quarter has 0.37.
	spatialAlpha, spatialBeta = 3.5, 0.74
	// 15 frames per second have the value 0.90 relative to 30, and 7.5 have 0.75.
	temporalAlpha, temporalBeta = 3.0, 0.63
	// legibility is the exponent of d for a screen. Letters of a screen are drawn as small as they are legible. With
	// 2/3 of the width and height they have the value 0.20, with half of both 0.06, and only pictures and the layout
	// are recognised.
	legibility = 2.0
	// stillness is the exponent of the relative frame rate of a screen: 5 frames per second have the value 0.90
	// relative to 30, since text does not move.
	stillness = 0.06
	// coarseness is the exponent of the relative rate of two levels with the same pixels and frame rate, which differ
	// in the quantiser: half the bits have the value 0.84.
	coarseness = 0.25
	// mostPixels and mostFrameRate bound the numbers of a level, so that ratios are finite.
	mostPixels, mostFrameRate = 1e9, 1e3
)

// bounded returns a positive number, at most most, and 0 for others.
func bounded(v, most float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, most)
}

// invertedExponential returns s(d), with s(0) = 0 and s(1) = 1.
func invertedExponential(d, alpha, beta float64) float64 {
	return (1 - math.Exp(-alpha*math.Pow(d, beta))) / (1 - math.Exp(-alpha))
}

// readPicture replaces the details of the levels of a picture by shares of the value. seen is the number of pixels that
// the whole panel covers in the receiver's view, 0 if unknown. If a level has no pixels, the details remain the shares
// of the rates, and the value of a level is that of a camera with that share of the pixels.
func (l *ladder) readPicture(picture Picture, tile *Tile, seen float64) {
	known := true
	var pixels, frames float64
	for q := range l.count {
		size, rate := bounded(tile.Levels[q].Pixels, mostPixels), bounded(tile.Levels[q].FrameRate, mostFrameRate)
		known = known && size > 0
		pixels, frames = max(pixels, size), max(frames, rate)
	}
	if !known {
		for q := range l.count {
			l.detail[q] = invertedExponential(min(max(l.detail[q], 0), 1), spatialAlpha, spatialBeta)
		}
		return
	}
	if seen > 0 {
		pixels = min(pixels, seen)
	}
	for q := range l.count {
		density, pace := min(bounded(tile.Levels[q].Pixels, mostPixels)/pixels, 1), 1.0
		if rate := bounded(tile.Levels[q].FrameRate, mostFrameRate); rate > 0 {
			pace = rate / frames
		}
		if picture == PictureScreen {
			l.detail[q] = math.Pow(density, legibility) * math.Pow(pace, stillness)
		} else {
			l.detail[q] = invertedExponential(density, spatialAlpha, spatialBeta) *
				invertedExponential(pace, temporalAlpha, temporalBeta)
		}
		l.detail[q] *= math.Pow(l.fineness(tile, q), coarseness)
	}
}

// fineness returns the rate of a level relative to the highest rate of the levels with the same pixels and frame rate.
func (l *ladder) fineness(tile *Tile, q int) float64 {
	highest := l.rate[q]
	for other := range l.count {
		if tile.Levels[other].Pixels == tile.Levels[q].Pixels &&
			tile.Levels[other].FrameRate == tile.Levels[q].FrameRate {
			highest = max(highest, l.rate[other])
		}
	}
	if highest <= 0 {
		return 1
	}
	return l.rate[q] / highest
}
