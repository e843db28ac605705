package glb

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sort"
	"sync"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Limits on what is opened and made of it.
const (
	maxFileBytes = 256 << 20
	// MaxPoints bounds a cloud.
	MaxPoints = 5_000_000
)

// Config says how a mesh is sampled.
type Config struct {
	// Points is the number of points of every cloud.
	Points int
	// Seed is where on the surface they lie.
	Seed int
	// FrameRate is how many clouds there are per second of the animation.
	FrameRate float64
}

// Figure is an animated mesh with points on its surface, which keep their places on it.
type Figure struct {
	scene    *scene
	parts    []part
	vertices int
	samples  []sample
	frames   int
	poses    sync.Pool // of *stage, one per load under way
}

// sample is a point of the surface.
type sample struct {
	vertices [3]uint32 // among those of the scene
	share    [3]float32
	color    [3]uint8
}

// stage is the memory of one load.
type stage struct {
	pose     pose
	vertices [][3]float64
}

// Open reads a file.
func Open(path string, c Config) (*Figure, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	f, err := New(data, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// New reads a file's contents.
func New(data []byte, c Config) (*Figure, error) {
	switch {
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrFile, maxFileBytes)
	case c.Points < 1 || c.Points > MaxPoints:
		return nil, fmt.Errorf("%w: %d points, expected 1 to %d", ErrConfig, c.Points, MaxPoints)
	case !(c.FrameRate > 0 && c.FrameRate <= 1000):
		return nil, fmt.Errorf("%w: %g frames per second, expected more than 0 and at most 1000", ErrConfig, c.FrameRate)
	}
	doc, err := parse(data)
	if err != nil {
		return nil, err
	}
	f := &Figure{}
	if f.scene, err = newScene(doc); err != nil {
		return nil, err
	}
	if f.parts, f.vertices, err = newParts(doc, f.scene); err != nil {
		return nil, err
	}
	// The loop closes: its frames share out the animation evenly, at a rate that differs from the one wished for by half a frame in all.
	f.frames = max(1, int(math.Round(f.scene.duration*c.FrameRate)))
	f.poses.New = func() any { return &stage{vertices: make([][3]float64, f.vertices)} }
	return f, f.sample(c)
}

// Len is the number of clouds that the animation has.
func (f *Figure) Len() int { return f.frames }

// Triangles is the number of triangles that are sampled.
func (f *Figure) Triangles() int {
	sum := 0
	for i := range f.parts {
		sum += len(f.parts[i].triangles)
	}
	return sum
}

// pose puts the vertices where they are in a frame.
func (f *Figure) pose(index int, s *stage) {
	f.scene.at(float64(index)*f.scene.duration/float64(f.frames), &s.pose)
	for i := range f.parts {
		f.parts[i].place(&s.pose, s.vertices)
	}
}

// redraws is how often a place is drawn anew where the surface is transparent.
const redraws = 16

// sample spreads the points over the surface as it is in the first frame: one at random in each of as many equal stretches of it, triangle by triangle.
func (f *Figure) sample(c Config) error {
	s := f.poses.Get().(*stage)
	defer f.poses.Put(s)
	f.pose(0, s)
	type piece struct {
		part     *part
		triangle [3]uint32
	}
	var pieces []piece
	var ends []float64 // of the area up to each piece
	total := 0.0
	for i := range f.parts {
		p := &f.parts[i]
		for _, t := range p.triangles {
			first := uint32(p.first)
			total += area(s.vertices[first+t[0]], s.vertices[first+t[1]], s.vertices[first+t[2]])
			pieces, ends = append(pieces, piece{p, t}), append(ends, total)
		}
	}
	if !(total > 1e-12 && total < 1e12) {
		return fmt.Errorf("%w: its surface has %g m²", ErrFile, total)
	}
	random := rand.New(rand.NewPCG(uint64(c.Seed), 0))
	for i := range c.Points {
		place := (float64(i) + random.Float64()) / float64(c.Points)
		for range redraws {
			at := min(sort.SearchFloat64s(ends, place*total), len(pieces)-1)
			chosen := pieces[at]
			// Uniform in a triangle (Osada et al., "Shape distributions", 2002, section 4.2).
			root, along := math.Sqrt(random.Float64()), random.Float64()
			share := [3]float64{1 - root, root * (1 - along), root * along}
			color, opacity := chosen.part.paint.at(chosen.triangle, share)
			if opacity < chosen.part.paint.cutoff {
				place = random.Float64()
				continue
			}
			first := uint32(chosen.part.first)
			f.samples = append(f.samples, sample{
				vertices: [3]uint32{first + chosen.triangle[0], first + chosen.triangle[1], first + chosen.triangle[2]},
				share:    [3]float32{float32(share[0]), float32(share[1]), float32(share[2])},
				color:    color,
			})
			break
		}
	}
	if len(f.samples) == 0 {
		return fmt.Errorf("%w: its surface is transparent", ErrFile)
	}
	return nil
}

// farthest is how far from the origin a figure may go, in metres.
const farthest = 1e4

// Load replaces the cloud's points by those of one frame, in an order that follows the mesh.
func (f *Figure) Load(index int, into *pointcloud.Cloud) error {
	into.Reset()
	s := f.poses.Get().(*stage)
	defer f.poses.Put(s)
	f.pose(index, s)
	for _, v := range s.vertices {
		for _, c := range v {
			if !(math.Abs(c) <= farthest) {
				return fmt.Errorf("%w: in frame %d a vertex is at %g, expected metres of at most %g", ErrFile, index, v, float64(farthest))
			}
		}
	}
	for i := range f.samples {
		p := &f.samples[i]
		a, b, c := &s.vertices[p.vertices[0]], &s.vertices[p.vertices[1]], &s.vertices[p.vertices[2]]
		var position [3]float32
		for axis := range 3 {
			position[axis] = float32(float64(p.share[0])*a[axis] + float64(p.share[1])*b[axis] + float64(p.share[2])*c[axis])
		}
		into.Append(position, p.color)
	}
	return nil
}
