package glb

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sort"
	"sync"

	"github.com/volsfu/volsfu/pkg/capture/virtual"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Limits on files and clouds.
const (
	maxFileBytes = 256 << 20
	// MaxPoints is the maximum number of points of a cloud.
	MaxPoints = 5_000_000
)

// Config configures the sampling of a mesh.
type Config struct {
	// Points is the number of points of every cloud.
	Points int
	// Seed selects the positions of the points on the surface.
	Seed int
	// FrameRate is the number of clouds per second of the animation.
	FrameRate float64
}

// Figure is an animated mesh with points at fixed positions on its surface.
type Figure struct {
	scene    *scene
	parts    []part
	vertices int
	samples  []sample
	frames   int
	poses    sync.Pool // of *stage, one per load in progress

	// triangles are those of all parts, with vertices of the scene, and owners their parts; set once by Mesh.
	surface   sync.Once
	triangles [][3]uint32
	owners    []int32
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

// New parses the contents of a file.
func New(data []byte, c Config) (*Figure, error) {
	switch {
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrFile, maxFileBytes)
	case c.Points < 1 || c.Points > MaxPoints:
		return nil, fmt.Errorf("%w: %d points, expected 1 to %d", ErrConfig, c.Points, MaxPoints)
	case !(c.FrameRate > 0 && c.FrameRate <= 1000):
		return nil, fmt.Errorf(
			"%w: %g frames per second, expected more than 0 and at most 1000",
			ErrConfig,
			c.FrameRate,
		)
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
	// The frames divide the animation evenly, so that the loop closes. The resulting rate differs
	// from the requested rate by at most half a frame in total.
	f.frames = max(1, int(math.Round(f.scene.duration*c.FrameRate)))
	f.poses.New = func() any { return &stage{vertices: make([][3]float64, f.vertices)} }
	return f, f.sample(c)
}

// Len returns the number of clouds of the animation.
func (f *Figure) Len() int { return f.frames }

// Triangles returns the number of sampled triangles.
func (f *Figure) Triangles() int {
	sum := 0
	for i := range f.parts {
		sum += len(f.parts[i].triangles)
	}
	return sum
}

// pose moves the vertices to their positions in a frame.
func (f *Figure) pose(index int, s *stage) {
	f.scene.at(float64(index)*f.scene.duration/float64(f.frames), &s.pose)
	for i := range f.parts {
		f.parts[i].place(&s.pose, s.vertices)
	}
}

// redraws is the maximum number of draws of a position on a transparent surface.
const redraws = 16

// sample distributes the points over the surface of the first frame: one random point in each of
// equal parts of the area, triangle by triangle.
func (f *Figure) sample(c Config) error {
	s := f.poses.Get().(*stage)
	defer f.poses.Put(s)
	f.pose(0, s)
	type piece struct {
		part     *part
		triangle [3]uint32
	}
	var pieces []piece
	var ends []float64 // sum of the areas up to each piece
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
		return fmt.Errorf("%w: the surface area is %g m²", ErrFile, total)
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
		return fmt.Errorf("%w: the surface is transparent", ErrFile)
	}
	return nil
}

// farthest is the maximum distance of a figure from the origin, in metres.
const farthest = 1e4

// Load replaces the cloud's points by the points of one frame, in the order of the mesh.
func (f *Figure) Load(index int, into *pointcloud.Cloud) error {
	into.Reset()
	s := f.poses.Get().(*stage)
	defer f.poses.Put(s)
	f.pose(index, s)
	if err := check(s.vertices, index); err != nil {
		return err
	}
	for i := range f.samples {
		p := &f.samples[i]
		a, b, c := &s.vertices[p.vertices[0]], &s.vertices[p.vertices[1]], &s.vertices[p.vertices[2]]
		var position [3]float32
		for axis := range 3 {
			position[axis] = float32(
				float64(p.share[0])*a[axis] + float64(p.share[1])*b[axis] + float64(p.share[2])*c[axis],
			)
		}
		into.Append(position, p.color)
	}
	return nil
}

// check returns an error if a vertex of a frame is not at a place of the world.
func check(vertices [][3]float64, index int) error {
	for _, v := range vertices {
		for _, c := range v {
			if !(math.Abs(c) <= farthest) {
				return fmt.Errorf(
					"%w: in frame %d a vertex is at %g, expected metres of at most %g",
					ErrFile,
					index,
					v,
					float64(farthest),
				)
			}
		}
	}
	return nil
}

// Mesh makes mesh the surface of one frame. All but the vertices is common to all frames; mesh is either zero, or was
// made by this method of the same figure.
func (f *Figure) Mesh(index int, mesh *virtual.Mesh) error {
	s := f.poses.Get().(*stage)
	defer f.poses.Put(s)
	f.pose(index, s)
	if err := check(s.vertices, index); err != nil {
		return err
	}
	mesh.Vertices = append(mesh.Vertices[:0], s.vertices...)
	f.surface.Do(f.setTriangles)
	mesh.Triangles, mesh.Color, mesh.Masked = f.triangles, f.colorAt, f.masked
	return nil
}

// setTriangles lists the triangles of all parts.
func (f *Figure) setTriangles() {
	for i := range f.parts {
		first := uint32(f.parts[i].first)
		for _, t := range f.parts[i].triangles {
			f.triangles = append(f.triangles, [3]uint32{first + t[0], first + t[1], first + t[2]})
			f.owners = append(f.owners, int32(i))
		}
	}
}

// colorAt is the Color of a mesh.
func (f *Figure) colorAt(triangle int, share [3]float64) ([3]uint8, bool) {
	p := &f.parts[f.owners[triangle]]
	t, first := f.triangles[triangle], uint32(p.first)
	color, opacity := p.paint.at([3]uint32{t[0] - first, t[1] - first, t[2] - first}, share)
	return color, opacity >= p.paint.cutoff
}

// masked is the Masked of a mesh.
func (f *Figure) masked(triangle int) bool { return f.parts[f.owners[triangle]].paint.cutoff > 0 }
