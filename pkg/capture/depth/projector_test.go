package depth

import (
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/allocations"
)

// wall is an image of constant depth.
func wall(c Camera, depth uint16) *Image {
	m := &Image{Depth: make([]uint16, c.Width*c.Height), Colors: make([][3]uint8, c.Width*c.Height)}
	for i := range m.Depth {
		m.Depth[i], m.Colors[i] = depth, [3]uint8{uint8(i % c.Width), uint8(i / c.Width), 9}
	}
	return m
}

func projector(t testing.TB, c Camera, options Options) *Projector {
	t.Helper()
	p, err := NewProjector(c, options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func project(t testing.TB, p *Projector, m *Image) *pointcloud.Cloud {
	t.Helper()
	cloud := new(pointcloud.Cloud)
	if err := p.Project(m, cloud); err != nil {
		t.Fatal(err)
	}
	return cloud
}

// everything keeps every pixel with a depth.
var everything = Options{Cleaning: Cleaning{EdgeRatio: 1}}

// TestProjectFollowsLensAndPose maps every point back to the image: it is at its pixel and depth.
func TestProjectFollowsLensAndPose(t *testing.T) {
	turn, _ := Rotation([4]float64{0.1, -0.5, 0.2, 0.8})
	for name, test := range lenses {
		c := Camera{
			Width: 64, Height: 48, FX: 60, FY: 62, CX: 30.5, CY: 24.25, Unit: 0.001, Distortion: test.lens,
			Pose: Pose{Rotation: turn, Translation: [3]float64{0.5, 1.5, -2}},
		}
		cloud := project(t, projector(t, c, everything), wall(c, 2000))
		if cloud.Len() < 1000 {
			t.Errorf("%s: %d points", name, cloud.Len())
		}
		into := c.Pose.Inverse()
		for i, p := range cloud.Positions {
			at := into.Apply([3]float64{float64(p[0]), float64(p[1]), float64(p[2])})
			u, v, ok := c.Project(at[0]/-at[2], -at[1]/-at[2])
			if off := math.Hypot(
				u-float64(cloud.Colors[i][0]),
				v-float64(cloud.Colors[i][1]),
			); !ok || off > 1e-3 ||
				math.Abs(at[2]+2) > 1e-5 {
				t.Fatalf("%s: the point of pixel %v is seen at %g, %g, %g m off", name, cloud.Colors[i], u, v, -at[2])
			}
		}
	}
}

func TestProjectWithinBox(t *testing.T) {
	turn, _ := Rotation([4]float64{0, 1, 0, 0.3})
	c := Camera{
		Width:  80,
		Height: 60,
		FX:     60,
		FY:     60,
		CX:     39.5,
		CY:     29.5,
		Unit:   0.001,
		Pose:   Pose{Rotation: turn, Translation: [3]float64{0.3, 0.1, 1}},
	}
	all := project(t, projector(t, c, everything), wall(c, 1500))
	bounds := all.Bounds()
	var box volumetric.BoundingBox
	for axis := range 3 {
		box.Min[axis] = bounds.Min[axis] + (bounds.Max[axis]-bounds.Min[axis])*0.2
		box.Max[axis] = bounds.Min[axis] + (bounds.Max[axis]-bounds.Min[axis])*0.7
	}
	options := everything
	options.Background.Box = box
	inside := project(t, projector(t, c, options), wall(c, 1500))
	expected := 0
	for i, p := range all.Positions {
		within, clear := true, true // away from the faces by more than rounding
		for axis := range 3 {
			within = within && p[axis] >= box.Min[axis] && p[axis] <= box.Max[axis]
			clear = clear && math.Abs(float64(p[axis]-box.Min[axis])) > 2e-3 &&
				math.Abs(float64(p[axis]-box.Max[axis])) > 2e-3
		}
		if within {
			expected++
		}
		if has := slices.Contains(inside.Colors, all.Colors[i]); clear && has != within {
			t.Errorf("pixel %v at %v: kept is %v, within the box is %v", all.Colors[i], p, has, within)
		}
	}
	if expected < 100 || math.Abs(float64(inside.Len()-expected)) > 0.05*float64(expected) {
		t.Errorf("%d points, expected about %d", inside.Len(), expected)
	}
	options.Background.Box = volumetric.BoundingBox{Min: [3]float32{50, 50, 50}, Max: [3]float32{51, 51, 51}}
	if cloud := project(t, projector(t, c, options), wall(c, 1500)); cloud.Len() != 0 {
		t.Errorf("%d points in a box that the camera does not see", cloud.Len())
	}
}

func TestDepthRange(t *testing.T) {
	tests := []struct {
		near, far float64
		expected  interval
	}{
		{0.7, 1.2, interval{700, 1200}},
		{0.7001, 1.1999, interval{701, 1199}},
		{0.1, 1000, interval{100, math.MaxUint16}},
		{0, math.Inf(1), interval{1, math.MaxUint16}},
		{70, 80, nothing},
		{1.2, 0.7, nothing},
		{-2, -1, nothing},
		{0.70001, 0.70002, nothing},
	}
	for _, test := range tests {
		if got := reach(test.near, test.far, 0.001); got != test.expected {
			t.Errorf("%g to %g m: got %v, expected %v", test.near, test.far, got, test.expected)
		}
	}
	if nothing.has(0) || nothing.has(1) || nothing.has(math.MaxUint16) {
		t.Error("nothing has something")
	}
}

// TestProjectLearnsTheBackground checks which pixels count as the object: those in front of the
// empty scene by more than the noise, and those without depth in the empty scene.
func TestProjectLearnsTheBackground(t *testing.T) {
	c := Camera{Width: 40, Height: 30, FX: 40, FY: 40, Unit: 0.001}
	options := everything
	options.Background.Static = true
	p := projector(t, c, options)
	for i := range LearnImages {
		if !p.Learning() {
			t.Fatalf("learnt after %d images, expected %d", i, LearnImages)
		}
		m := wall(c, uint16(2000+i%7)) // noise
		for x := range c.Width / 2 {
			m.Depth[x] = 0 // a row with every second pixel black
		}
		if cloud := project(t, p, m); cloud.Len() != 0 {
			t.Fatalf("%d points of the background", cloud.Len())
		}
	}
	if p.Learning() {
		t.Fatal("goes on learning")
	}
	// 2 m less 1 % and 2 cm are 1.96 m.
	for depth, points := range map[uint16]int{2000: c.Width / 2, 1961: c.Width / 2, 1959: c.Width * c.Height,
		500: c.Width * c.Height, 3000: c.Width / 2} {
		for _, q := range []*Projector{p, p.Clone()} {
			if cloud := project(t, q, wall(c, depth)); cloud.Len() != points {
				t.Errorf("at %d mm: %d points, expected %d", depth, cloud.Len(), points)
			}
		}
	}
}

func writePNG(t *testing.T, path string, picture image.Image) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(png.Encode(file, picture), file.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestProjectTakesTheBackgroundFromFile(t *testing.T) {
	c := Camera{Name: "left", Width: 4, Height: 3, FX: 4, FY: 4, Unit: 0.001}
	dir := t.TempDir()
	picture := image.NewGray16(image.Rect(0, 0, 4, 3))
	for i := range 8 {
		picture.SetGray16(i%4, i/4, color.Gray16{Y: 1000})
	}
	writePNG(t, filepath.Join(dir, "left.png"), picture)
	writePNG(t, filepath.Join(dir, "gray.png"), image.NewGray(image.Rect(0, 0, 4, 3)))
	writePNG(t, filepath.Join(dir, "large.png"), image.NewGray16(image.Rect(0, 0, 5, 3)))
	if err := os.WriteFile(filepath.Join(dir, "torn.png"), []byte("\x89PNG\r\n\x1a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "left.png")} {
		options := everything
		options.Background = Background{Static: true, Scene: path}
		p := projector(t, c, options)
		if p.Learning() {
			t.Error("learns what it was given")
		}
		if cloud := project(t, p, wall(c, 990)); cloud.Len() != 4 {
			t.Errorf("%s: %d points, expected those of the last row", path, cloud.Len())
		}
	}
	for name, says := range map[string]string{"gray.png": "16-bit", "large.png": "expected 4 × 3",
		"torn.png": "torn.png", "none.png": "none.png"} {
		options := everything
		options.Background = Background{Static: true, Scene: filepath.Join(dir, name)}
		if _, err := NewProjector(c, options); !errors.Is(err, ErrBackground) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestProjectKeepsLabelsAndSources(t *testing.T) {
	c := Camera{Width: 4, Height: 2, FX: 4, FY: 4, Unit: 0.001}
	plain, labelled := wall(c, 1000), wall(c, 1000)
	plain.Colors = nil
	labelled.Labels = []uint16{0, 1, 2, 300, 0, 0, 7, 8}
	options := everything
	var cloud pointcloud.Cloud
	for i, m := range []*Image{plain, labelled, plain} {
		options.Source = uint16(i * 2) // none, then bits
		if err := projector(t, c, options).Project(m, &cloud); err != nil {
			t.Fatal(err)
		}
	}
	labels := slices.Concat(make([]uint16, 8), labelled.Labels, make([]uint16, 8))
	sources := slices.Concat(make([]uint16, 8), slices.Repeat([]uint16{2}, 8), slices.Repeat([]uint16{4}, 8))
	if !slices.Equal(cloud.Labels, labels) || !slices.Equal(cloud.Sources, sources) {
		t.Errorf("labels %v, sources %v", cloud.Labels, cloud.Sources)
	}
	if cloud.Colors[0] != unknownColor || cloud.Colors[9] != labelled.Colors[1] {
		t.Errorf("colours %v", cloud.Colors)
	}
	options.Background.Mask = true
	masked := project(t, projector(t, c, options), labelled)
	if !slices.Equal(masked.Labels, []uint16{1, 2, 300, 7, 8}) {
		t.Errorf("labels after masking: %v", masked.Labels)
	}
	if err := projector(t, c, options).Project(plain, &cloud); !errors.Is(err, ErrImage) {
		t.Errorf("a mask without labels: %v", err)
	}
}

func TestProjectRefusesOtherImages(t *testing.T) {
	c := Camera{Width: 4, Height: 2, FX: 4, FY: 4, Unit: 0.001}
	p := projector(t, c, everything)
	for _, change := range []func(*Image){
		func(m *Image) { m.Depth = m.Depth[1:] }, func(m *Image) { m.Depth = nil },
		func(m *Image) { m.Colors = m.Colors[1:] }, func(m *Image) { m.Labels = make([]uint16, 9) },
	} {
		m := wall(c, 1000)
		change(m)
		var cloud pointcloud.Cloud
		if err := p.Project(m, &cloud); !errors.Is(err, ErrImage) || cloud.Len() != 0 {
			t.Errorf("got %v and %d points", err, cloud.Len())
		}
	}
}

// TestProjectIsAllocationFree also checks that the result is the same for any number of threads.
func TestProjectIsAllocationFree(t *testing.T) {
	m := seatedImage(t, "000")
	options := DefaultOptions()
	options.Background = Background{Near: 0.5207, Far: 1.25961}
	options.Source = 1
	var first *pointcloud.Cloud
	for _, threads := range []int{1, 3} {
		options.Threads = threads
		p := projector(t, seated, options)
		cloud := project(t, p, m)
		if first == nil {
			first = cloud
		}
		if !slices.Equal(cloud.Positions, first.Positions) || !slices.Equal(cloud.Colors, first.Colors) ||
			cloud.Len() < 60_000 {
			t.Errorf("%d threads: %d points, other than with one thread", threads, cloud.Len())
		}
		// A goroutine may occasionally need a new stack.
		if n := allocations.PerCall(4, func() {
			cloud.Reset()
			_ = p.Project(m, cloud)
		}); n >= 1 {
			t.Errorf("%d threads: %g allocations per image", threads, n)
		}
	}
}

// FuzzProject projects arbitrary images of a small camera: points are within range, at most one per
// pixel.
func FuzzProject(f *testing.F) {
	f.Add([]byte("aaaabbbbccccdddd"), uint8(3), uint8(2))
	f.Add(make([]byte, 200), uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, width, threads uint8) {
		c := Camera{Width: int(width%32) + 1, FX: 20, FY: 20, Unit: 0.001, Distortion: lenses["brown-conrady"].lens}
		c.Height = len(data) / 2 / c.Width
		if c.Height == 0 {
			return
		}
		var m Image
		for i := range c.Width * c.Height {
			m.Depth = append(m.Depth, uint16(data[2*i])<<8|uint16(data[2*i+1]))
		}
		options := Options{
			Cleaning:   Cleaning{EdgeRatio: 0.3, EdgeNeighbors: 2, MinBlobPixels: 3},
			Background: Background{Near: 0.7, Far: 20},
			Threads:    int(threads)%5 + 1,
		}
		p, err := NewProjector(c, options)
		if err != nil {
			t.Fatal(err)
		}
		var cloud pointcloud.Cloud
		if err := p.Project(&m, &cloud); err != nil || cloud.Len() > len(m.Depth) || len(cloud.Colors) != cloud.Len() {
			t.Fatalf("%d points and %d colours of %d pixels: %v", cloud.Len(), len(cloud.Colors), len(m.Depth), err)
		}
		for _, p := range cloud.Positions {
			if !(-p[2] > 0.6999 && -p[2] < 20.001) {
				t.Errorf("a point at %v", p)
			}
		}
	})
}
