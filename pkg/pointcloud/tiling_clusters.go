package pointcloud

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// MaxClusters is the maximum number of tiles of a ClusterTiling.
const MaxClusters = 64

const (
	// clusterSample is the number of points of the first frame from which the centres are computed. With 64 clusters, a
	// cluster has 256 points; the mean is accurate to a sixteenth of the spread.
	clusterSample = 16384
	// clusterRounds limits the iterations. The centres of a person usually converge after 20 to 40
	// iterations.
	clusterRounds = 64
	// lookupEdge is the number of cells of the lookup table along each axis: 3 cm for a standing
	// person. A fifth of the points is then in cells with more than one of 15 tiles. The table fits
	// the second-level cache.
	lookupEdge = 64
	// mixedCell marks a cell with more than one tile.
	mixedCell = 0xff
)

// ClusterTiling divides a cloud by centres computed from the first frame with points: k-means (Lloyd 1982) with initial
// centres by k-means++ (Arthur and Vassilvitskii 2007). Points of later frames belong to the nearest centre, so that
// tiles do not move in space. The same first frame and seed result in the same tiles, numbered from the bottom to the
// top. ClusterTiling belongs to one goroutine.
type ClusterTiling struct {
	seed    uint64
	centres [][3]float32
	learnt  learnt
	// lookup contains the tile of each cell that lies in one tile. scale is in cells per metre for
	// each axis.
	lookup []uint8
	scale  [3]float32
}

// NewClusterTiling returns the tiling with 1 to MaxClusters tiles for an object within the box. The
// error wraps ErrTiling for other numbers and invalid boxes.
func NewClusterTiling(tiles int, seed uint64, box volumetric.BoundingBox) (*ClusterTiling, error) {
	if tiles < 1 || tiles > MaxClusters {
		return nil, fmt.Errorf("%w: %d clusters, expected 1 to %d", ErrTiling, tiles, MaxClusters)
	}
	if err := checkBox(box); err != nil {
		return nil, err
	}
	return &ClusterTiling{seed: seed, centres: make([][3]float32, tiles), learnt: learnt{whole: box}}, nil
}

// Len returns the number of tiles.
func (t *ClusterTiling) Len() int { return len(t.centres) }

// Index returns the tile of the centre nearest to the point, or the first tile before the first
// frame.
func (t *ClusterTiling) Index(p [3]float32) int {
	// Distances are not negative, and the bit patterns of non-negative numbers have the same order. With the tile in
	// the lowest bits, the minimum is found without a branch, which real points would mispredict.
	least := uint64(math.MaxUint64)
	for i, c := range t.centres {
		least = min(least, uint64(math.Float32bits(squareDistance(c, p)))<<8|uint64(i))
	}
	return int(least & 0xff)
}

// Assign implements Tiler.
func (t *ClusterTiling) Assign(src *Cloud, begin int, into []uint8) {
	if t.lookup == nil {
		clear(into)
		return
	}
	low, scale := t.learnt.whole.Min, t.scale
	for i, p := range src.Positions[begin : begin+len(into)] {
		tile := uint8(mixedCell)
		if p[0] >= low[0] && p[1] >= low[1] && p[2] >= low[2] {
			x, y, z := uint32((p[0]-low[0])*scale[0]), uint32((p[1]-low[1])*scale[1]), uint32((p[2]-low[2])*scale[2])
			if x < lookupEdge && y < lookupEdge && z < lookupEdge {
				tile = t.lookup[(x*lookupEdge+y)*lookupEdge+z]
			}
		}
		if tile == mixedCell {
			tile = uint8(t.Index(p))
		}
		into[i] = tile
	}
}

// Learn implements Tiler. It computes the centres.
func (t *ClusterTiling) Learn(src *Cloud) error {
	if t.learnt.done() || src.Len() == 0 {
		return nil
	}
	var sample Cloud
	Stride(src, &sample, clusterSample)
	t.spread(sample.Positions)
	for range clusterRounds {
		if !t.moveCentres(sample.Positions) {
			break
		}
	}
	slices.SortFunc(t.centres, func(a, b [3]float32) int {
		return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(a[0], b[0]), cmp.Compare(a[2], b[2]))
	})
	t.tabulate()
	t.learnt.learn(src, len(t.centres), t)
	return nil
}

// tabulate finds the cells that lie in one tile. No point of a cell is further from the cell's
// centre than half of the diagonal. If a centre is nearer to the cell's centre than all others by
// the diagonal, it is nearest to all points of the cell.
func (t *ClusterTiling) tabulate() {
	var cell [3]float32
	diagonal := 0.0
	for axis := range 3 {
		size := t.learnt.whole.Max[axis] - t.learnt.whole.Min[axis]
		cell[axis] = size / lookupEdge
		diagonal += float64(cell[axis]) * float64(cell[axis])
		t.scale[axis] = 0
		if size > 0 {
			t.scale[axis] = lookupEdge / size
		}
	}
	// One per cent of margin for rounding.
	diagonal = 1.01*math.Sqrt(diagonal) + 1e-5
	t.lookup = make([]uint8, lookupEdge*lookupEdge*lookupEdge)
	for i := range t.lookup {
		at := [3]int{i / (lookupEdge * lookupEdge), i / lookupEdge % lookupEdge, i % lookupEdge}
		var middle [3]float32
		for axis := range middle {
			middle[axis] = t.learnt.whole.Min[axis] + (float32(at[axis])+0.5)*cell[axis]
		}
		first, second := math.Inf(1), math.Inf(1)
		for _, c := range t.centres {
			d := float64(squareDistance(c, middle))
			first, second = min(first, d), min(second, max(first, d))
		}
		t.lookup[i] = mixedCell
		if math.Sqrt(second)-math.Sqrt(first) > diagonal {
			t.lookup[i] = uint8(t.Index(middle))
		}
	}
}

// spread chooses points as initial centres: the probability of a point grows with the square of the distance to the
// centres chosen before.
func (t *ClusterTiling) spread(points [][3]float32) {
	random := rand.New(rand.NewPCG(t.seed, 0))
	least := make([]float64, len(points))
	for i := range least {
		least[i] = math.Inf(1)
	}
	next := random.IntN(len(points))
	for i := range t.centres {
		t.centres[i] = points[next]
		sum := 0.0
		for j, p := range points {
			least[j] = min(least[j], float64(squareDistance(p, t.centres[i])))
			sum += least[j]
		}
		// If all points are centres already, the last point is chosen again: the second tile of that point is empty.
		for target := sum * random.Float64(); target > 0 && sum > 0; {
			next = (next + 1) % len(points)
			target -= least[next]
		}
	}
}

// moveCentres moves every centre to the mean of the points nearest to the centre, and reports whether any centre moved.
func (t *ClusterTiling) moveCentres(points [][3]float32) bool {
	var sums [MaxClusters][3]float64
	var counts [MaxClusters]int
	for _, p := range points {
		tile := t.Index(p)
		counts[tile]++
		for axis, v := range p {
			sums[tile][axis] += float64(v)
		}
	}
	moved := false
	for i := range t.centres {
		if counts[i] == 0 {
			continue
		}
		var middle [3]float32
		for axis := range middle {
			middle[axis] = float32(sums[i][axis] / float64(counts[i]))
		}
		moved = moved || middle != t.centres[i]
		t.centres[i] = middle
	}
	return moved
}

// Tiles returns the tiles with labels "cluster 0", "cluster 1" and so on.
func (t *ClusterTiling) Tiles() []volumetric.Tile {
	tiles := make([]volumetric.Tile, len(t.centres))
	for i := range tiles {
		tiles[i] = volumetric.Tile{Label: "cluster " + strconv.Itoa(i), Box: t.learnt.box(i)}
	}
	return tiles
}
