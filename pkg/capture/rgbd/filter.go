package rgbd

import (
	"fmt"
	"math"
)

// Config says what of a depth image is the object.
type Config struct {
	Near          float64 `yaml:"near" help:"nearest depth kept, in metres; 0 takes near_m of the intrinsics"`
	Far           float64 `yaml:"far" help:"farthest depth kept, in metres; 0 takes far_m of the intrinsics"`
	EdgeRatio     float64 `yaml:"edge_ratio" help:"a step in depth between neighbouring pixels above this part of the depth is an edge"`
	EdgeNeighbors int     `yaml:"edge_neighbors" help:"pixels with fewer of their 8 neighbours on their own surface are dropped as mixed by an edge; 0 keeps all"`
	MinBlobPixels int     `yaml:"min_blob_pixels" help:"connected surfaces of fewer pixels are dropped as noise; 0 keeps all"`
}

// DefaultConfig suits people within reach of an indoor depth camera.
//
// EdgeRatio: neighbouring pixels of a 70° wide, 512 pixels wide camera are 1/366 of the depth apart, so that a surface seen at 82° from its
// normal still rises by only 0.02 of the depth per pixel; the gap between an arm and the body behind it is larger.
// EdgeNeighbors: the corner pixel of a surface has 3 neighbours on it, the pixel of a straight rim 5, a pixel that mixes front and back
// hovers between both and has 0 to 2.
// MinBlobPixels: 150 pixels are a patch of 3 cm at 1 m, smaller than a hand.
func DefaultConfig() Config {
	return Config{EdgeRatio: 0.02, EdgeNeighbors: 3, MinBlobPixels: 150}
}

// filter is a Config in units of the camera.
type filter struct {
	near, far uint16
	edge      float32
	neighbors int
	minBlob   int
}

func newFilter(in Intrinsics, cfg Config) (filter, error) {
	near, far := cfg.Near, cfg.Far
	if near == 0 {
		near = in.Near
	}
	if far == 0 {
		far = in.Far
	}
	if far == 0 {
		far = math.MaxUint16 * in.DepthUnit
	}
	switch {
	case !(near >= 0 && far > near && !math.IsInf(far, 0)):
		return filter{}, fmt.Errorf("%w: depth range is %g to %g m, expected 0 <= near < far", ErrConfig, near, far)
	case !(cfg.EdgeRatio > 0 && cfg.EdgeRatio <= 1):
		return filter{}, fmt.Errorf("%w: edge ratio is %g, expected more than 0 and at most 1", ErrConfig, cfg.EdgeRatio)
	case cfg.EdgeNeighbors < 0 || cfg.EdgeNeighbors > 8:
		return filter{}, fmt.Errorf("%w: edge neighbours are %d, expected 0 to 8", ErrConfig, cfg.EdgeNeighbors)
	case cfg.MinBlobPixels < 0:
		return filter{}, fmt.Errorf("%w: smallest blob has %d pixels, expected 0 or more", ErrConfig, cfg.MinBlobPixels)
	}
	// A thousandth of a unit forgives the rounding of the division, so that a depth of exactly the limit is kept.
	units := func(metres float64) float64 { return min(metres/in.DepthUnit, math.MaxUint16) }
	return filter{
		near: uint16(math.Ceil(units(near) - 1e-3)), far: uint16(units(far) + 1e-3),
		edge: float32(cfg.EdgeRatio), neighbors: cfg.EdgeNeighbors, minBlob: cfg.MinBlobPixels,
	}, nil
}

// apply sets the depth of every pixel to 0 that is not of the object.
func (f *filter) apply(w *workspace) {
	for i, d := range w.depth {
		if d < f.near || d > f.far {
			w.depth[i] = 0
		}
	}
	f.dropMixed(w)
	f.dropBlobs(w)
}

// joined tells whether two neighbouring pixels are of one surface.
func (f *filter) joined(a, b uint16) bool {
	low, high := min(a, b), max(a, b)
	return low != 0 && float32(high-low) <= f.edge*float32(low)
}

// dropMixed removes flying pixels: at the rim of an object a pixel sees the front and the back together and reports a depth between them.
func (f *filter) dropMixed(w *workspace) {
	if f.neighbors == 0 {
		return
	}
	mixed := w.blobs.queue[:0]
	for y := range w.height {
		for x := range w.width {
			i := y*w.width + x
			if w.depth[i] != 0 && f.joinedNeighbors(w, x, y) < f.neighbors {
				mixed = append(mixed, int32(i))
			}
		}
	}
	for _, i := range mixed {
		w.depth[i] = 0
	}
}

func (f *filter) joinedNeighbors(w *workspace, x, y int) int {
	depth, count := w.depth[y*w.width+x], 0
	for row := max(y-1, 0); row <= min(y+1, w.height-1); row++ {
		for column := max(x-1, 0); column <= min(x+1, w.width-1); column++ {
			if f.joined(depth, w.depth[row*w.width+column]) {
				count++
			}
		}
	}
	return count - 1 // the pixel itself
}

// blobs is the memory of a flood fill over one image.
type blobs struct {
	queue []int32
	seen  []bool
}

func newBlobs(pixels int) blobs {
	return blobs{queue: make([]int32, 0, pixels), seen: make([]bool, pixels)}
}

// dropBlobs removes connected surfaces (by edges of pixels, not corners) that are too small. Each pixel is queued once.
func (f *filter) dropBlobs(w *workspace) {
	if f.minBlob <= 1 {
		return
	}
	clear(w.blobs.seen)
	for start := range w.depth {
		if w.depth[start] == 0 || w.blobs.seen[start] {
			continue
		}
		if blob := f.flood(w, int32(start)); len(blob) < f.minBlob {
			for _, i := range blob {
				w.depth[i] = 0
			}
		}
	}
}

// flood lists the pixels of the surface that one pixel belongs to.
func (f *filter) flood(w *workspace, start int32) []int32 {
	queue, seen, width := append(w.blobs.queue[:0], start), w.blobs.seen, int32(w.width)
	seen[start] = true
	for head := 0; head < len(queue); head++ {
		at := queue[head]
		x, depth := at%width, w.depth[at]
		visit := func(to int32) {
			if !seen[to] && f.joined(depth, w.depth[to]) {
				seen[to] = true
				queue = append(queue, to)
			}
		}
		if x > 0 {
			visit(at - 1)
		}
		if x < width-1 {
			visit(at + 1)
		}
		if at >= width {
			visit(at - width)
		}
		if int(at+width) < len(w.depth) {
			visit(at + width)
		}
	}
	return queue
}
