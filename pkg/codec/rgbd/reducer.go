package rgbd

import (
	"image"
	"slices"
)

// sameSurface is the largest difference of two depths of one surface, relative to the depth: that of
// depth.DefaultCleaning.
const sameSurface = 0.02

// reducer combines pixels.
type reducer struct {
	depths []uint16
	colors [][channels]uint8
}

// reduce returns a part with one pixel for each square of 2^reduction pixels. A pixel has a depth if at least half of
// its pixels have one: the mean of the pixels on the surface of the median. The colour is the mean of the same pixels.
func (r *reducer) reduce(from part, reduction int) part {
	edge := 1 << reduction
	to := part{rect: image.Rect(from.rect.Min.X/edge, from.rect.Min.Y/edge, (from.rect.Max.X+edge-1)/edge,
		(from.rect.Max.Y+edge-1)/edge)}
	to.stride, to.origin = to.rect.Dx(), to.rect.Min
	size := to.rect.Dx() * to.rect.Dy()
	r.depths = zeroed(r.depths, size)
	r.colors = zeroed(r.colors, size)
	at := 0
	for top := 0; top < from.rect.Dy(); top += edge {
		for left := 0; left < from.rect.Dx(); left += edge {
			r.depths[at], r.colors[at] = from.mean(left, top, edge)
			at++
		}
	}
	to.depths, to.colors = r.depths, r.colors
	if len(from.colors) == 0 {
		to.colors = nil
	}
	return to
}

// mean returns depth and colour of the square of pixels with the given upper left corner, 0 if it has no depth.
func (p *part) mean(left, top, edge int) (depth uint16, color [channels]uint8) {
	var sorted [16]uint16
	found, pixels := 0, 0
	right, bottom := min(p.rect.Dx(), left+edge), min(p.rect.Dy(), top+edge)
	for y := top; y < bottom; y++ {
		for _, d := range p.depths[p.at(y)+left : p.at(y)+right] {
			pixels++
			if d != 0 {
				sorted[found] = d
				found++
			}
		}
	}
	if found == 0 || 2*found < pixels {
		return 0, color
	}
	slices.Sort(sorted[:found])
	median := int(sorted[found/2])
	reach := int(sameSurface * float64(median))
	var depths, count int
	var sums [channels]int
	for y := top; y < bottom; y++ {
		for at := p.at(y) + left; at < p.at(y)+right; at++ {
			d := int(p.depths[at])
			if d == 0 || d < median-reach || d > median+reach {
				continue
			}
			depths += d
			count++
			if len(p.colors) > 0 {
				for i, v := range p.colors[at] {
					sums[i] += int(v)
				}
			}
		}
	}
	for i, sum := range sums {
		color[i] = uint8((sum + count/2) / count)
	}
	return uint16((depths + count/2) / count), color
}
