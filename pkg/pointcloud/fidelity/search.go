package fidelity

import (
	"cmp"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// search finds neighbours in a cloud. The search keeps the distance at which enough neighbours were found, because the
// neighbours of the next position are about as far away. A search is used by one goroutine; results are valid until the
// next call.
type search struct {
	cloud *pointcloud.Cloud
	index *pointcloud.Index
	reach float32
	found []int
}

// newSearch returns a search. The first distance is that of points on a surface as large as the box's largest side.
func newSearch(cloud *pointcloud.Cloud, index *pointcloud.Index) *search {
	box := cloud.Bounds()
	longest := max(box.Max[0]-box.Min[0], box.Max[1]-box.Min[1], box.Max[2]-box.Min[2])
	reach := longest * float32(math.Sqrt(neighbours/math.Pi/float64(cloud.Len())))
	return &search{cloud: cloud, index: index, reach: max(reach, math.SmallestNonzeroFloat32)}
}

// nearest returns the points nearest to a position, the nearest first, or all points if there are fewer than want. Of
// equally near points the lower index comes first.
func (s *search) nearest(p [3]float32, want int) []int {
	want = min(want, s.cloud.Len())
	for {
		s.found = s.index.Within(p, s.reach, s.found[:0])
		switch {
		case len(s.found) < want:
			s.reach *= 1.5
			continue
		case len(s.found) > 4*want:
			// There are more than enough points; the next search may use a smaller distance.
			s.reach /= 1.5
		}
		break
	}
	square := func(i int) float64 { return squareDistance(s.cloud.Positions[i], p) }
	slices.SortFunc(s.found, func(a, b int) int {
		return cmp.Or(cmp.Compare(square(a), square(b)), a-b)
	})
	return s.found[:want]
}

// within returns the points whose distance from a position is less than the radius, in increasing order.
func (s *search) within(p [3]float32, radius float64) []int {
	// The index compares in single precision.
	s.found = s.index.Within(p, float32(radius*(1+1e-5)), s.found[:0])
	s.found = slices.DeleteFunc(s.found, func(i int) bool {
		return squareDistance(s.cloud.Positions[i], p) >= radius*radius
	})
	slices.Sort(s.found)
	return s.found
}

func squareDistance(a, b [3]float32) float64 {
	sum := 0.0
	for axis := range a {
		d := float64(a[axis]) - float64(b[axis])
		sum += d * d
	}
	return sum
}
