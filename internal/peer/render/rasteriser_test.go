package render

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/allocations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a rasteriser that ends with the test.
func open(t testing.TB, width, height, workers int) *Rasteriser {
	t.Helper()
	r := NewRasteriser(width, height, workers)
	t.Cleanup(r.Close)
	return r
}

// wall returns a square of random points on a plane z, centred.
func wall(points int, edge, z float32, paint [3]uint8) *pointcloud.Cloud {
	random := rand.New(rand.NewPCG(1, uint64(points)))
	c := &pointcloud.Cloud{}
	for range points {
		c.Append([3]float32{(random.Float32() - 0.5) * edge, (random.Float32() - 0.5) * edge, z}, paint)
	}
	return c
}

// figure returns a person of the given number of points.
func figure(t testing.TB, points int) *pointcloud.Cloud {
	t.Helper()
	cfg := synthetic.DefaultConfig()
	cfg.Points = points
	f, err := synthetic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var c pointcloud.Cloud
	f.At(0, &c)
	return &c
}

// TestNearest checks that the nearer of two walls is visible, in any order of drawing.
func TestNearest(t *testing.T) {
	r := open(t, 64, 64, 2)
	red, blue := wall(4000, 1, -2, [3]uint8{255, 0, 0}), wall(4000, 4, -4, [3]uint8{0, 0, 255})
	for _, layers := range [][]Layer{{{Cloud: red}, {Cloud: blue}}, {{Cloud: blue}, {Cloud: red}}} {
		r.Draw(View{}, layers)
		picture := r.Image(nil)
		if got := picture.RGBAAt(32, 32); got != (color.RGBA{255, 0, 0, 255}) {
			t.Errorf("the middle is %v, expected the nearer wall", got)
		}
		// At 4 m the far wall is 55 pixels wide, at 2 m the near one 28.
		if got := picture.RGBAAt(10, 32); got != (color.RGBA{0, 0, 255, 255}) {
			t.Errorf("beside it there is %v, expected the wall behind", got)
		}
		if got := picture.RGBAAt(1, 1); got != (color.RGBA{0x20, 0x24, 0x28, 255}) {
			t.Errorf("the corner is %v, expected the background", got)
		}
	}
}

// TestDirections checks the position of a point for views and poses of the object.
func TestDirections(t *testing.T) {
	half := math.Sqrt(0.5)
	tests := []struct {
		name  string
		view  View
		place Place
		point [3]float32
		x, y  int
	}{
		{"ahead", View{}, Place{}, [3]float32{0, 0, -2}, 50, 50},
		{"right", View{}, Place{}, [3]float32{0.5, 0, -2}, 71, 50},
		{"above", View{}, Place{}, [3]float32{0, 0.5, -2}, 50, 28},
		{"from the side", View{Position: [3]float64{0.5, 0, 0}}, Place{}, [3]float32{0.5, 0, -2}, 50, 50},
		{"turned to the left", View{Orientation: [4]float64{0, half, 0, half}}, Place{}, [3]float32{-2, 0, 0}, 50, 50},
		{"turned, something ahead and to the right", View{Orientation: [4]float64{0, half, 0, half}}, Place{},
			[3]float32{-2, 0, -0.5}, 71, 50},
		{"looking up", View{Orientation: [4]float64{half, 0, 0, half}}, Place{}, [3]float32{0, 2, 0}, 50, 50},
		{"an object that was moved", View{}, Place{Position: [3]float64{0.5, 0, -2}}, [3]float32{}, 71, 50},
		{"an object that was turned", View{}, Place{Position: [3]float64{0, 0, -2},
			Orientation: [4]float64{0, half, 0, half}}, [3]float32{0, 0, 0.5}, 71, 50},
		{"an object that was enlarged", View{}, Place{Position: [3]float64{0, 0, -2}, Scale: 5}, [3]float32{0.1, 0, 0},
			71, 50},
		{"narrow view", View{FOV: math.Pi / 6}, Place{}, [3]float32{0.1, 0, -2}, 59, 50},
	}
	r := open(t, 100, 100, 1)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cloud := &pointcloud.Cloud{}
			cloud.Append(test.point, [3]uint8{1, 2, 3})
			r.Draw(test.view, []Layer{{cloud, test.place}})
			if n := drawn(r); len(n) != 1 || abs(n[0].X-test.x) > 1 || abs(n[0].Y-test.y) > 1 {
				t.Errorf("the point is at %v, expected near (%d,%d)", n, test.x, test.y)
			}
		})
	}
}

func abs(v int) int { return max(v, -v) }

// drawn returns the pixels with points.
func drawn(r *Rasteriser) (list []image.Point) {
	for i, word := range r.pixels {
		if word != blank {
			list = append(list, image.Pt(i%r.width, i/r.width))
		}
	}
	return list
}

// covered returns the share of pixels with points.
func covered(r *Rasteriser) float64 { return float64(len(drawn(r))) / float64(len(r.pixels)) }

// TestStrayPoints checks that points behind the eye, outside of the picture, or without finite coordinates are not
// drawn, and do no harm.
func TestStrayPoints(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cloud := &pointcloud.Cloud{}
	for _, p := range [][3]float32{
		{0, 0, 1}, {0, 0, 0}, {9, 0, -1}, {0, -9, -1}, {nan, 0, -1}, {0, 0, nan}, {inf, 0, -1}, {0, 0, -inf},
		{0, inf, -inf}, {3e38, 3e38, -3e38}, {-3e38, 0, -1},
	} {
		cloud.Append(p, [3]uint8{})
	}
	r := open(t, 100, 60, 2)
	r.Draw(View{}, []Layer{{Cloud: cloud}, {Cloud: &pointcloud.Cloud{}}})
	// Only one of these points is visible: its distance equals its offset.
	if n := len(drawn(r)); n > maxSize*maxSize {
		t.Errorf("%d pixels were drawn, expected those of one point at most", n)
	}
	r.Draw(View{}, nil)
	if n := len(drawn(r)); n != 0 || covered(r) != 0 {
		t.Errorf("%d pixels were drawn of nothing", n)
	}
}

// TestWorkers checks that the picture is independent of the number of workers.
func TestWorkers(t *testing.T) {
	cloud := figure(t, 5000)
	one, three := open(t, 320, 180, 1), open(t, 320, 180, 3)
	view := Fit(cloud.Bounds(), 320./180)
	one.Draw(view, []Layer{{Cloud: cloud}})
	three.Draw(view, []Layer{{Cloud: cloud}})
	for i := range one.pixels {
		if one.pixels[i] != three.pixels[i] {
			t.Fatalf("pixel %d differs", i)
		}
	}
	if part := covered(one); part < 0.03 || part > 0.6 {
		t.Errorf("a figure that fits covers %.2f of the picture", part)
	}
}

// TestHoles checks that a wall of random points has no holes at usual distances, for all qualities and rotations, with
// tiles of different qualities side by side.
func TestHoles(t *testing.T) {
	r := open(t, 640, 360, 0)
	for _, points := range []int{2500, 20000} {
		for _, turned := range [][4]float64{{}, {0, 0.3826834, 0, 0.9238795}} {
			for _, distance := range []float64{1, 4} {
				cloud := wall(points, 1, 0, [3]uint8{200, 100, 50})
				r.Draw(View{Position: [3]float64{0, 0, distance}}, []Layer{{cloud, Place{Orientation: turned}}})
				// The examined part is the inner half of the wall's height, and the inner quarter of its width.
				side := 0.5 * float64(r.height) / 2 / math.Tan(math.Pi/6) / distance
				holes, looked := 0, 0
				for y := r.height/2 - int(side/2); y < r.height/2+int(side/2); y++ {
					for x := r.width/2 - int(side/4); x < r.width/2+int(side/4); x++ {
						looked++
						if r.pixels[y*r.width+x] == blank {
							holes++
						}
					}
				}
				if part := float64(holes) / float64(looked); part > 0.04 {
					t.Errorf("%d points at %g m, turned %v: %.1f %% of the wall are holes", points, distance, turned,
						100*part)
				}
			}
		}
	}
}

// TestFit checks that the whole box is in the picture.
func TestFit(t *testing.T) {
	r := open(t, Width, Height, 0)
	for _, box := range []volumetric.BoundingBox{
		{Min: [3]float32{-0.5, 0, -0.3}, Max: [3]float32{0.5, 1.8, 0.3}},
		{Min: [3]float32{-3, 1, 5}, Max: [3]float32{3, 2, 6}},
		{},
	} {
		cloud := &pointcloud.Cloud{}
		for corner := range 8 {
			var p [3]float32
			for axis := range p {
				p[axis] = box.Min[axis]
				if corner>>axis&1 == 1 {
					p[axis] = box.Max[axis]
				}
			}
			cloud.Append(p, [3]uint8{255, 255, 255})
		}
		r.Draw(Fit(box, float64(Width)/Height), []Layer{{Cloud: cloud}})
		for _, p := range drawn(r) {
			if p.X == 0 || p.Y == 0 || p.X == r.width-1 || p.Y == r.height-1 {
				t.Fatalf("box %v touches the edge of the picture", box)
			}
		}
		if covered(r) == 0 {
			t.Errorf("box %v is not in the picture", box)
		}
	}
}

// TestAllocations checks that pictures of the same size allocate nothing.
func TestAllocations(t *testing.T) {
	cloud := figure(t, 5000)
	r := open(t, 320, 180, 2)
	layers := []Layer{{Cloud: cloud}}
	view := Fit(cloud.Bounds(), 320./180)
	r.Draw(view, layers)
	picture := r.Image(nil)
	if n := allocations.PerCall(10, func() {
		r.Draw(view, layers)
		picture = r.Image(picture)
	}); n != 0 {
		t.Errorf("%g allocations per picture", n)
	}
}

func BenchmarkDraw(b *testing.B) {
	cloud := figure(b, 100000)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			r := NewRasteriser(Width, Height, workers)
			defer r.Close()
			layers := []Layer{{Cloud: cloud}}
			view := Fit(cloud.Bounds(), float64(Width)/Height)
			b.ReportAllocs()
			for b.Loop() {
				r.Draw(view, layers)
			}
		})
	}
}
