package pointcloud

import "math"

// Stride replaces dst's points by about evenly many of every part of src's sequence: exactly the given number, or all where src has no
// more. It is as quick as copying, but needs an order in which every stretch of the sequence is spread over the object, as
// captures do not have when they go row by row: there the rows and the stride make stripes. Sampler has no such condition.
// Both clouds must be different ones.
func Stride(src, dst *Cloud, points int) {
	dst.Reset()
	n := src.Len()
	if points >= n {
		dst.Positions = append(dst.Positions, src.Positions...)
		dst.Colors = append(dst.Colors, src.Colors...)
		return
	}
	for i := range points {
		at := stretch(i, points, n)
		dst.Append(src.Positions[at], src.Colors[at])
	}
}

// stretch is the middle of the i-th of equal stretches of n points: the fraction of a step is never lost, so that exactly as many are chosen.
func stretch(i, stretches, n int) int {
	return int((2*int64(i) + 1) * int64(n) / (2 * int64(stretches)))
}

// Sampler picks points evenly over the object's surface, whatever order they come in: it sorts them along a Z-order curve through
// their bounding cube and takes as many from every stretch of the curve. The same points give the same choice in every frame.
// It keeps its working memory; one goroutine uses it at a time.
type Sampler struct {
	keys, sorted []uint64
}

// curveBits is the number of bits per coordinate on the curve: 1,024 cells along the longest edge, 2 mm for a standing person.
const curveBits = 10

// Sample replaces dst's points by the given number of src's, or by all where src has no more. Both clouds must be different ones.
func (s *Sampler) Sample(src, dst *Cloud, points int) {
	n := src.Len()
	if points >= n || points <= 0 {
		Stride(src, dst, points)
		return
	}
	dst.Reset()
	s.sort(src)
	for i := range points {
		j := uint32(s.keys[stretch(i, points, n)])
		dst.Append(src.Positions[j], src.Colors[j])
	}
}

// sort leaves in keys, for every point in the order of the curve, its place on the curve (high half) and its index (low half).
func (s *Sampler) sort(src *Cloud) {
	n := src.Len()
	s.keys, s.sorted = resize(s.keys, n), resize(s.sorted, n)
	box := src.Bounds()
	edge := max(box.Max[0]-box.Min[0], box.Max[1]-box.Min[1], box.Max[2]-box.Min[2])
	scale := float32(0)
	if edge > 0 {
		scale = (1<<curveBits - 1) / edge
	}
	for i, p := range src.Positions {
		var cell [3]uint64
		for axis := range cell {
			cell[axis] = uint64((p[axis] - box.Min[axis]) * scale)
		}
		place := spread(cell[0]) | spread(cell[1])<<1 | spread(cell[2])<<2
		s.keys[i] = place<<32 | uint64(uint32(i))
	}
	// Three passes of ten bits sort the 30 bits of the place; points of one cell stay in the order in which they came.
	const digit = 10
	for shift := 32; shift < 32+3*curveBits; shift += digit {
		var begin [1 << digit]int
		for _, k := range s.keys {
			begin[k>>shift&(1<<digit-1)]++
		}
		sum := 0
		for i, count := range begin {
			begin[i] = sum
			sum += count
		}
		for _, k := range s.keys {
			d := k >> shift & (1<<digit - 1)
			s.sorted[begin[d]] = k
			begin[d]++
		}
		s.keys, s.sorted = s.sorted, s.keys
	}
}

// spread puts two zeros between the ten low bits.
func spread(v uint64) uint64 {
	v &= 1<<curveBits - 1
	v = (v | v<<16) & 0x030000ff
	v = (v | v<<8) & 0x0300f00f
	v = (v | v<<4) & 0x030c30c3
	return (v | v<<2) & 0x09249249
}

// resize gives the slice the length, with unspecified contents, and memory of its own only where what it has does not suffice.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// Portion is the number of points that a ratio of the cloud's points comes to, at least one where ratio and cloud are not nothing.
func (c *Cloud) Portion(ratio float64) int {
	if c.Len() == 0 || !(ratio > 0) {
		return 0
	}
	return max(1, int(math.Round(min(ratio, 1)*float64(c.Len()))))
}
