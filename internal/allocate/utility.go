package allocate

import (
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// bitsPerPoint is the assumed rate of a point in bit/s, since publishers do not declare the number of points: 24 bits
// per point, as with Draco at 11 bits per coordinate with colours, at 30 frames per second.
const bitsPerPoint = 24 * 30

// mostConcave bounds the exponent of utility: a tile with 30 points on every pixel shows everything with the first
// tenth of them.
const mostConcave = 30

// mostRate bounds declared rates, in bit/s, so that sums of them remain exact.
const mostRate = 1e12

// utility computes the values of the levels of a tile.
//
// A level with the share d of the points of full quality has the value
//
//	u(d) = weight · (1 - exp(-k·d)) / (1 - exp(-k)),  k = concavity + points / pixels
//
// The weight is the share of the view that the tile covers. The rest is the visible part of that share: n points that
// fall on N pixels at random leave exp(-n/N) of the pixels empty, so relative to full quality, the share d of the
// points covers (1-exp(-d·n/N)) / (1-exp(-n/N)). A figure of 40,000 points that covers half of 4.5 million pixels has a
// fiftieth of a point on each: twice the points are twice the picture. At 10 m it covers 10,000 pixels, n/N is 4, and a
// quarter of the points is 64 % of the picture.
//
// Before that limit is reached, a tile with few points still counts for more than their share, because a hole is worse
// than a coarse surface. The configured concavity models this: with 1, the values of 1/4, 1/2 and all points are 0.35,
// 0.62 and 1, so the first points are worth e times the last.
type utility struct {
	weight, exponent, scale float64
}

func newUtility(cfg *ViewConfig, s visibility, points float64) utility {
	exponent := cfg.Concavity
	if s.pixels > 0 {
		exponent += points / s.pixels
	}
	exponent = min(exponent, mostConcave)
	return utility{weight: s.weight, exponent: exponent, scale: s.weight / (1 - math.Exp(-exponent))}
}

// of returns the value of a share of the points. The exponent is at least 0.01, so the difference does not lose its
// precision. For a picture, of returns the value of a share of the value.
func (u *utility) of(detail float64) float64 {
	if u.exponent == 0 {
		return u.weight * detail
	}
	return u.scale * (1 - math.Exp(-u.exponent*detail))
}

// value reads the levels of a tile and returns their utility. For a picture, details are shares of the value.
func (l *ladder) value(cfg *ViewConfig, object *Object, tile *Tile, seen visibility) utility {
	l.read(object.Mode, tile)
	if object.Picture == PictureNone {
		return newUtility(cfg, seen, l.points)
	}
	l.readPicture(object.Picture, tile, seen.pixels)
	return utility{weight: seen.weight}
}

// ladder holds the rates and details of the levels of a tile.
type ladder struct {
	count  int
	mode   volumetric.Mode
	rate   [volumetric.MaxQualities]float64
	detail [volumetric.MaxQualities]float64
	paused QualitySet
	points float64
}

// read reads the levels of a tile and completes missing values.
func (l *ladder) read(mode volumetric.Mode, tile *Tile) {
	l.count, l.mode, l.paused = min(len(tile.Levels), volumetric.MaxQualities), mode, 0
	declared := true
	for q := range l.count {
		level := &tile.Levels[q]
		l.rate[q] = min(max(float64(level.Rate), 0), mostRate)
		l.detail[q] = level.Detail
		declared = declared && level.Detail > 0 && level.Detail <= 1
		if level.Paused {
			l.paused |= 1 << q
		}
	}
	for q := range l.count {
		if l.rate[q] == 0 && l.paused.Has(volumetric.Quality(q)) {
			l.rate[q] = l.guess(q, declared)
		}
	}
	var total, most float64
	for _, rate := range l.rate[:l.count] {
		total += rate
		most = max(most, rate)
	}
	if !declared {
		l.detailsFromRates(total, most)
	}
	l.points = most / bitsPerPoint
	if mode == volumetric.ModeDescriptions {
		l.points = total / bitsPerPoint
	}
}

// guess returns the rate of a paused level that was never measured, from the nearest level with a rate, the lower of
// two.
func (l *ladder) guess(q int, declared bool) float64 {
	for distance := 1; distance < l.count; distance++ {
		for _, other := range [2]int{q - distance, q + distance} {
			if other < 0 || other >= l.count || l.rate[other] == 0 {
				continue
			}
			if declared {
				return min(l.rate[other]*l.detail[q]/l.detail[other], mostRate)
			}
			return l.rate[other]
		}
	}
	return 0
}

// detailsFromRates derives the shares of points from the rates, given the sum of all rates and the highest.
func (l *ladder) detailsFromRates(total, most float64) {
	for q := range l.count {
		switch {
		case l.mode == volumetric.ModeDescriptions && total > 0:
			l.detail[q] = l.rate[q] / total
		case l.mode == volumetric.ModeDescriptions:
			l.detail[q] = 1 / float64(l.count)
		case most > 0:
			l.detail[q] = l.rate[q] / most
		default:
			l.detail[q] = float64(q+1) / float64(l.count)
		}
	}
}

// of returns the rate and the detail of a set of levels. In volumetric.ModeAlternatives the highest of the set counts.
func (l *ladder) of(set QualitySet) (rate, detail float64) {
	if l.mode != volumetric.ModeDescriptions {
		if q := set.Highest(); q >= 0 && int(q) < l.count {
			return l.rate[q], l.detail[q]
		}
		return 0, 0
	}
	for q := range l.count {
		if set>>q&1 == 1 {
			rate += l.rate[q]
			detail += l.detail[q]
		}
	}
	return rate, min(detail, 1)
}
