package pointcloud

import "math"

// Stride replaces dst's points by the given number of points at equal intervals along src, or by all points if src does
// not have more. Stride is as fast as copying, but requires an order in which every range of the sequence is spread
// over the object. Captures in row order do not have such an order: rows and intervals then interfere and leave
// stripes. Sampler has no such requirement. src and dst must be different clouds.
func Stride(src, dst *Cloud, points int) {
	n := src.Len()
	if points >= n {
		dst.CopyFrom(src)
		return
	}
	dst.resize(max(points, 0), src)
	for i := range points {
		dst.set(i, src, middleOf(i, points, n))
	}
}

// middleOf returns the middle of range i of equal ranges of n points. No fraction of a step is
// lost, so that exactly the requested number is chosen.
func middleOf(i, stretches, n int) int {
	return int((2*int64(i) + 1) * int64(n) / (2 * int64(stretches)))
}

// Sampler selects points evenly over the object's surface, for any order of points. A Sampler sorts the points along a
// Z-order curve through the bounding cube and takes points at equal intervals along the curve. The same points result
// in the same choice in every frame. Sampler uses all processors and keeps working memory. One goroutine at a time uses
// a Sampler.
type Sampler struct {
	workerGroup workerGroup
	// keys contains for every point the position on the curve (high half) and the index (low half).
	keys, sorted []uint64
	// begins contains, for each worker and digit of a sorting pass, the position of the worker's
	// next key with this digit.
	begins [][digits]int32
	shift  int // of the pass

	src, dst *Cloud
	points   int
	low      [3]float32
	scale    float32
	steps    struct{ place, count, move, take func(worker, begin, end int) }
}

// curveBits is the number of bits per coordinate on the curve: 1,024 cells along the longest edge,
// 2 mm for a standing person.
const curveBits = 10

// Three passes of ten bits sort the 30 bits of a curve position. Points of one cell keep the order.
const (
	digitBits = 10
	digits    = 1 << digitBits
)

// Sample replaces dst's points by the given number of src's points, or by all if src does not have
// more. src and dst must be different clouds.
func (s *Sampler) Sample(src, dst *Cloud, points int) {
	n := src.Len()
	if points >= n || points <= 0 {
		Stride(src, dst, points)
		return
	}
	if s.steps.place == nil {
		s.steps.place, s.steps.count, s.steps.move, s.steps.take = s.placeRange, s.countRange, s.moveRange, s.takeRange
	}
	box := src.Bounds()
	edge := max(box.Max[0]-box.Min[0], box.Max[1]-box.Min[1], box.Max[2]-box.Min[2])
	s.low, s.scale = box.Min, 0
	if edge > 0 {
		s.scale = (1<<curveBits - 1) / edge
	}
	s.keys, s.sorted = resize(s.keys, n), resize(s.sorted, n)
	s.src, s.dst, s.points = src, dst, points
	workers := s.workerGroup.size(n)
	s.begins = resize(s.begins, workers)
	s.workerGroup.do(n, workers, s.steps.place)
	for s.shift = 32; s.shift < 32+3*curveBits; s.shift += digitBits {
		s.workerGroup.do(n, workers, s.steps.count)
		sum := int32(0)
		for digit := range digits {
			for w := range s.begins {
				s.begins[w][digit], sum = sum, sum+s.begins[w][digit]
			}
		}
		s.workerGroup.do(n, workers, s.steps.move)
		s.keys, s.sorted = s.sorted, s.keys
	}
	dst.resize(points, src)
	s.workerGroup.do(points, s.workerGroup.size(points), s.steps.take)
	s.src, s.dst = nil, nil
}

// placeRange computes the positions of points on the curve.
func (s *Sampler) placeRange(_, begin, end int) {
	for i, p := range s.src.Positions[begin:end] {
		place := spread(
			uint64((p[0]-s.low[0])*s.scale),
		) | spread(
			uint64((p[1]-s.low[1])*s.scale),
		)<<1 | spread(
			uint64((p[2]-s.low[2])*s.scale),
		)<<2
		s.keys[begin+i] = place<<32 | uint64(uint32(begin+i))
	}
}

// countRange counts the digits of a pass.
func (s *Sampler) countRange(worker, begin, end int) {
	counts, shift := &s.begins[worker], s.shift
	clear(counts[:])
	for _, k := range s.keys[begin:end] {
		counts[k>>shift&(digits-1)]++
	}
}

// moveRange moves the keys of a pass to the new positions.
func (s *Sampler) moveRange(worker, begin, end int) {
	next, shift := &s.begins[worker], s.shift
	for _, k := range s.keys[begin:end] {
		digit := k >> shift & (digits - 1)
		s.sorted[next[digit]] = k
		next[digit]++
	}
}

// takeRange copies the chosen points.
func (s *Sampler) takeRange(_, begin, end int) {
	for i := begin; i < end; i++ {
		s.dst.set(i, s.src, int(uint32(s.keys[middleOf(i, s.points, s.src.Len())])))
	}
}

// spread inserts two zeros between the ten low bits.
func spread(v uint64) uint64 {
	v &= 1<<curveBits - 1
	v = (v | v<<16) & 0x030000ff
	v = (v | v<<8) & 0x0300f00f
	v = (v | v<<4) & 0x030c30c3
	return (v | v<<2) & 0x09249249
}

// resize returns a slice of length n with unspecified contents. resize allocates only if the capacity of s does not
// suffice.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// Portion returns the number of points for a ratio, at least one unless the ratio or the cloud is
// empty.
func (c *Cloud) Portion(ratio float64) int {
	if c.Len() == 0 || !(ratio > 0) {
		return 0
	}
	return max(1, int(math.Round(min(ratio, 1)*float64(c.Len()))))
}
