package depth

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// drawing is a depth image in the form of letters, one for each depth.
type drawing struct {
	rows   []string
	depths map[rune]uint16
}

func (d drawing) image() (Camera, *Image) {
	camera := Camera{Width: len([]rune(d.rows[0])), Height: len(d.rows), FX: 1, FY: 1, Unit: 0.001}
	var m Image
	for y, row := range d.rows {
		for x, letter := range []rune(row) {
			m.Depth = append(m.Depth, d.depths[letter])
			m.Colors = append(m.Colors, [3]uint8{uint8(x), uint8(y)})
		}
	}
	return camera, &m
}

// kept draws the result: the letters of the pixels that became points.
func (d drawing) kept(cloud *pointcloud.Cloud) string {
	points := map[[3]uint8]bool{}
	for _, c := range cloud.Colors {
		points[c] = true
	}
	var out strings.Builder
	for y, row := range d.rows {
		for x, letter := range []rune(row) {
			if !points[[3]uint8{uint8(x), uint8(y)}] {
				letter = '.'
			}
			out.WriteRune(letter)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func (d drawing) project(t *testing.T, options Options) string {
	t.Helper()
	camera, m := d.image()
	p, err := NewProjector(camera, options)
	if err != nil {
		t.Fatal(err)
	}
	var cloud pointcloud.Cloud
	if err := p.Project(m, &cloud); err != nil {
		t.Fatal(err)
	}
	return d.kept(&cloud)
}

func TestCleaning(t *testing.T) {
	// p: person at 1 m with a surface up to q; b: wall at 2 m; m: pixels that mix both; n: noise in
	// front.
	depths := map[rune]uint16{'p': 1000, 'q': 1015, 'b': 2000, 'm': 1400, 'n': 700, 'i': 1700}
	full := drawing{depths: depths, rows: []string{
		"bbbbbbbbbbbb",
		"bbbbbbbbbbbb",
		"bbmppppmbbnb",
		"bbmpqqpmbbbb",
		"bbmpqqpmibbb",
		"bbmppppmbbbb",
		"bbbbbbbbbbbb",
		"bbbbbbbbbbbb",
	}}
	tests := []struct {
		name       string
		cleaning   Cleaning
		background Background
		kept       []string
	}{
		{name: "everything", cleaning: Cleaning{EdgeRatio: 0.02}, kept: full.rows},
		{
			name:       "depth range",
			cleaning:   Cleaning{EdgeRatio: 0.02},
			background: Background{Near: 1, Far: 1.015},
			kept: []string{
				"............", "............", "...pppp.....", "...pqqp.....", "...pqqp.....", "...pppp.....",
				"............", "............",
			},
		},
		{name: "flying pixels", cleaning: Cleaning{EdgeRatio: 0.02, EdgeNeighbors: 3}, kept: []string{
			"bbbbbbbbbbbb", "bbbbbbbbbbbb", "bb.pppp.bb.b", "bb.pqqp.bbbb", "bb.pqqp..bbb", "bb.pppp.bbbb",
			"bbbbbbbbbbbb", "bbbbbbbbbbbb",
		}},
		{name: "blobs below 16", cleaning: Cleaning{EdgeRatio: 0.02, MinBlobPixels: 16}, kept: []string{
			"bbbbbbbbbbbb", "bbbbbbbbbbbb", "bb.pppp.bb.b", "bb.pqqp.bbbb", "bb.pqqp..bbb", "bb.pppp.bbbb",
			"bbbbbbbbbbbb", "bbbbbbbbbbbb",
		}},
		{name: "blobs below 17", cleaning: Cleaning{EdgeRatio: 0.02, MinBlobPixels: 17}, kept: []string{
			"bbbbbbbbbbbb", "bbbbbbbbbbbb", "bb......bb.b", "bb......bbbb", "bb.......bbb", "bb......bbbb",
			"bbbbbbbbbbbb", "bbbbbbbbbbbb",
		}},
		{name: "finer edges", cleaning: Cleaning{EdgeRatio: 0.01, MinBlobPixels: 10}, kept: []string{
			"bbbbbbbbbbbb", "bbbbbbbbbbbb", "bb.pppp.bb.b", "bb.p..p.bbbb", "bb.p..p..bbb", "bb.pppp.bbbb",
			"bbbbbbbbbbbb", "bbbbbbbbbbbb",
		}},
		{name: "nothing left", cleaning: Cleaning{EdgeRatio: 0.02, MinBlobPixels: 1000}, kept: []string{
			"............", "............", "............", "............", "............", "............",
			"............", "............",
		}},
	}
	for _, test := range tests {
		for threads := 1; threads <= 9; threads += 2 {
			got := full.project(t, Options{Cleaning: test.cleaning, Background: test.background, Threads: threads})
			if expected := strings.Join(test.kept, "\n") + "\n"; got != expected {
				t.Errorf("%s, %d threads: kept\n%sexpected\n%s", test.name, threads, got, expected)
			}
		}
	}
}

// TestSurfacesMeetAtEdges checks that pixels are connected by edges, and not across the image
// border.
func TestSurfacesMeetAtEdges(t *testing.T) {
	d := drawing{depths: map[rune]uint16{'a': 1000}, rows: []string{
		"aaa...",
		"...aaa",
		"a....a",
		"a....a",
	}}
	got := d.project(t, Options{Cleaning: Cleaning{EdgeRatio: 0.02, MinBlobPixels: 4}})
	if expected := "......\n...aaa\n.....a\n.....a\n"; got != expected {
		t.Errorf("kept\n%sexpected\n%s", got, expected)
	}
}

// TestSurfacesAgreeWithFloodFill compares with a flood fill, pixel by pixel, on images of noise,
// which include rows that merge late, spirals and combs.
func TestSurfacesAgreeWithFloodFill(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	joints := newJoints(0.1)
	for round := range 100 {
		camera := Camera{Width: 1 + random.IntN(40), Height: 1 + random.IntN(40), FX: 1, FY: 1, Unit: 0.001}
		var m Image
		steps := []uint16{0, 1000, 1090, 1180, 1500}[:2+round%4]
		for range camera.Width * camera.Height {
			m.Depth = append(m.Depth, steps[random.IntN(len(steps))])
		}
		smallest := 1 + random.IntN(30)
		p, err := NewProjector(
			camera,
			Options{Cleaning: Cleaning{EdgeRatio: 0.1, MinBlobPixels: smallest}, Threads: 1 + round%5},
		)
		if err != nil {
			t.Fatal(err)
		}
		var cloud pointcloud.Cloud
		if err := p.Project(&m, &cloud); err != nil {
			t.Fatal(err)
		}
		expected := flood(camera, m.Depth, joints, smallest)
		if cloud.Len() != len(expected) {
			t.Fatalf("round %d: %d points, expected %d", round, cloud.Len(), len(expected))
		}
		for i, pixel := range expected {
			if x := float32(
				pixel%camera.Width,
			) * float32(
				m.Depth[pixel],
			) * 0.001; math.Abs(
				float64(x-cloud.Positions[i][0]),
			) > 1e-4 {
				t.Fatalf("round %d: point %d is at %v, expected it at pixel %d", round, i, cloud.Positions[i], pixel)
			}
		}
	}
}

// flood returns the pixels of surfaces with at least the given size.
func flood(c Camera, depth []uint16, joints []joint, smallest int) []int {
	seen, kept := make([]bool, len(depth)), make([]bool, len(depth))
	for start := range depth {
		if depth[start] == 0 || seen[start] {
			continue
		}
		seen[start] = true
		surface := []int{start}
		for i := 0; i < len(surface); i++ {
			at := surface[i]
			for _, step := range [][2]int{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
				x, y := at%c.Width+step[0], at/c.Width+step[1]
				if x < 0 || y < 0 || x >= c.Width || y >= c.Height {
					continue
				}
				if to := y*c.Width + x; !seen[to] && depth[to] != 0 && joints[depth[at]].has(depth[to]) {
					seen[to] = true
					surface = append(surface, to)
				}
			}
		}
		for _, i := range surface {
			kept[i] = len(surface) >= smallest
		}
	}
	var pixels []int
	for i, keep := range kept {
		if keep {
			pixels = append(pixels, i)
		}
	}
	return pixels
}

// TestJoints checks that the table has exactly the depths that differ by at most the ratio of the
// nearer one.
func TestJoints(t *testing.T) {
	for _, ratio := range []float64{0.005, 0.02, 0.1, 0.5, 1} {
		joints := newJoints(ratio)
		for _, depth := range []int{1, 2, 3, 10, 49, 50, 51, 99, 100, 999, 1000, 5207, 12_596, 40_000, 65_535} {
			j := joints[depth]
			for _, other := range []int{0, 1, int(j.lo) - 1, int(j.lo), depth, int(j.lo) + int(j.span),
				int(j.lo) + int(j.span) + 1, 65_535} {
				if other > math.MaxUint16 || other < 0 {
					continue
				}
				low, high := min(depth, other), max(depth, other)
				expected := low > 0 && float64(high-low) <= ratio*float64(low)+1e-9
				if got := j.has(uint16(other)); got != expected {
					t.Errorf("ratio %g: %d and %d are joined: %v, expected %v", ratio, depth, other, got, expected)
				}
				if back := joints[other].has(uint16(depth)); other > 0 && back != expected {
					t.Errorf("ratio %g: %d and %d are joined one way only", ratio, depth, other)
				}
			}
		}
	}
}

func TestOptionsErrors(t *testing.T) {
	camera := Camera{Width: 4, Height: 1, FX: 1, FY: 1, Unit: 0.001}
	tests := []struct {
		change func(*Options, *Camera)
		err    error
		says   string
	}{
		{func(o *Options, _ *Camera) { o.Background.Near, o.Background.Far = 2, 1.5 }, ErrBackground, "2 to 1.5 m"},
		{func(o *Options, _ *Camera) { o.Background.Near = -1 }, ErrBackground, "-1 to 0 m"},
		{func(o *Options, _ *Camera) { o.Background.Near = math.NaN() }, ErrBackground, "NaN"},
		{func(o *Options, _ *Camera) { o.Background.Far = math.Inf(1) }, ErrBackground, "+Inf"},
		{func(o *Options, _ *Camera) { o.Background.Box.Min[1] = 1 }, ErrBackground, "lower corner first"},
		{func(o *Options, _ *Camera) { o.Cleaning.EdgeRatio = 0 }, ErrCleaning, "edge ratio is 0"},
		{func(o *Options, _ *Camera) { o.Cleaning.EdgeRatio = math.NaN() }, ErrCleaning, "edge ratio is NaN"},
		{func(o *Options, _ *Camera) { o.Cleaning.EdgeRatio = 1.1 }, ErrCleaning, "expected more than 0"},
		{func(o *Options, _ *Camera) { o.Cleaning.EdgeNeighbors = 9 }, ErrCleaning, "neighbours are 9"},
		{func(o *Options, _ *Camera) { o.Cleaning.EdgeNeighbors = -1 }, ErrCleaning, "neighbours are -1"},
		{func(o *Options, _ *Camera) { o.Cleaning.MinBlobPixels = -1 }, ErrCleaning, "has -1"},
		{func(_ *Options, c *Camera) { c.Width = 0 }, ErrCamera, "0 × 1"},
		{func(_ *Options, c *Camera) { c.Width = MaxPixels + 1 }, ErrCamera, "pixels"},
		{func(_ *Options, c *Camera) { c.FX = math.NaN() }, ErrCamera, "NaN"},
		{func(_ *Options, c *Camera) { c.CX = math.Inf(-1) }, ErrCamera, "-Inf"},
		{func(_ *Options, c *Camera) { c.Unit = 1 }, ErrCamera, "unit of depth is 1"},
		{func(_ *Options, c *Camera) { c.Distortion.Model = 9 }, ErrCamera, "model 9"},
		{func(_ *Options, c *Camera) { c.Distortion.Coefficients[2] = math.NaN() }, ErrCamera, "coefficient 3"},
		{func(_ *Options, c *Camera) { c.Distortion.Radius = -1 }, ErrCamera, "radius is -1"},
		{func(_ *Options, c *Camera) { c.Pose.Translation[0] = 1e5 }, ErrCamera, "position"},
		{func(_ *Options, c *Camera) { c.Pose.Rotation[0][0] = 1 }, ErrCamera, "rotation"},
	}
	for _, test := range tests {
		options, c := DefaultOptions(), camera
		test.change(&options, &c)
		if _, err := NewProjector(c, options); !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("got %v, expected an error around %q that says %q", err, test.err, test.says)
		}
	}
}
