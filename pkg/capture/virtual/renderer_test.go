package virtual

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// eye returns a rig of one camera of 160 × 120 pixels, 1 m in front of the origin and turned a little.
func eye(t *testing.T, noise string) Rig {
	t.Helper()
	r, err := ParseRig([]byte("cameras: [{width: 160, height: 120, fx: 150, fy: 150, position: [0.1, 0.2, 1], " +
		"look_at: [0, 0, 0], near_m: 0.1, noise: {" + noise + "}}]"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sheet returns a mesh of two triangles in a plane, whose colours are the weights of the corners.
func sheet(corners [4][3]float64) *Mesh {
	return &Mesh{Vertices: corners[:], Triangles: [][3]uint32{{0, 1, 2}, {0, 2, 3}},
		Color: func(triangle int, share [3]float64) ([3]uint8, bool) {
			return [3]uint8{uint8(255 * share[0]), uint8(255 * share[1]), uint8(100 * (triangle + 1))}, true
		}}
}

// expected returns the depth at which a pixel's ray meets the plane z = 0.
func expected(c *depth.Camera, pixel int) (z float64, at [3]float64) {
	x, y, _ := c.Deproject(float64(pixel%c.Width), float64(pixel/c.Width))
	ray := minus(c.Pose.Apply([3]float64{x, -y, -1}), c.Pose.Translation)
	z = -c.Pose.Translation[2] / ray[2]
	for axis := range at {
		at[axis] = c.Pose.Translation[axis] + ray[axis]*z
	}
	return z, at
}

// TestMesh compares depths, outlines and colours of a plane with those computed from the rays.
func TestMesh(t *testing.T) {
	r := eye(t, "")
	c := &r.Cameras[0].Camera
	n := NewRenderer(r, 0)
	var m depth.Image
	for range 2 { // the memory is used again
		n.RenderMesh(sheet([4][3]float64{{-0.2, -0.2, 0}, {0.2, -0.2, 0}, {0.2, 0.2, 0}, {-0.2, 0.2, 0}}), 0, &m)
	}
	if err := m.Validate(c); err != nil {
		t.Fatal(err)
	}
	inside := 0
	for pixel, d := range m.Depth {
		z, at := expected(c, pixel)
		reach := max(math.Abs(at[0]), math.Abs(at[1]))
		switch {
		case reach > 0.201 && d != 0, reach < 0.199 && d == 0:
			t.Fatalf("pixel %d sees %v and has depth %d", pixel, at, d)
		case d == 0:
			continue
		}
		inside++
		if math.Abs(float64(d)*c.Unit-z) > 0.6*c.Unit {
			t.Fatalf("pixel %d has depth %d, expected %g m", pixel, d, z)
		}
		// Above the diagonal is the second triangle, whose first corner has the weight of the distance from the upper
		// right, as in the first.
		first, blue := (0.2-at[0])/0.4, 100
		if at[1] > at[0] {
			first, blue = (0.2-at[1])/0.4, 200
		}
		if color := m.Colors[pixel]; math.Abs(float64(color[0])-255*first) > 2 ||
			math.Abs(at[1]-at[0]) > 0.005 && int(color[2]) != blue {
			t.Fatalf("pixel %d at %v has colour %v, expected %g and %d", pixel, at, color, 255*first, blue)
		}
	}
	if inside < 3000 {
		t.Errorf("%d pixels of the plane", inside)
	}
}

// TestNearerHides checks the order of surfaces, transparent parts and surfaces that reach behind the camera.
func TestNearerHides(t *testing.T) {
	r := eye(t, "")
	r.Cameras[0].Pose = depth.Pose{}
	wall := func(half, z float64) [4][3]float64 {
		return [4][3]float64{{-half, -half, z}, {half, -half, z}, {half, half, z}, {-half, half, z}}
	}
	near, far := wall(0.2, -1), wall(5, -2)
	floor := [4][3]float64{{-9, -0.5, 9}, {9, -0.5, 9}, {9, -0.5, -9}, {-9, -0.5, -9}}
	mesh := sheet(near)
	for _, corners := range [][4][3]float64{far, floor} {
		first := uint32(len(mesh.Vertices))
		mesh.Vertices = append(mesh.Vertices, corners[:]...)
		mesh.Triangles = append(mesh.Triangles, [3]uint32{first, first + 1, first + 2},
			[3]uint32{first, first + 2, first + 3})
	}
	var m depth.Image
	n := NewRenderer(r, 0)
	n.RenderMesh(mesh, 0, &m)
	at := func(x, y int) float64 { return float64(m.Depth[y*160+x]) * r.Cameras[0].Unit }
	for _, test := range []struct {
		x, y int
		want float64
	}{{80, 60, 1}, {10, 60, 2}, {80, 10, 2}, {20, 119, 0.5 * 150 / 59.5}} {
		if got := at(test.x, test.y); math.Abs(got-test.want) > 1e-3 {
			t.Errorf("depth at %d, %d is %g m, expected %g", test.x, test.y, got, test.want)
		}
	}
	opaque := mesh.Color
	mesh.Color = func(triangle int, share [3]float64) ([3]uint8, bool) {
		color, _ := opaque(triangle, share)
		return color, triangle > 1
	}
	mesh.Masked = func(triangle int) bool { return triangle < 2 }
	if n.RenderMesh(mesh, 0, &m); math.Abs(at(80, 60)-2) > 1e-3 {
		t.Errorf("depth behind a transparent surface is %g m, expected 2", at(80, 60))
	}
}

// ball returns a ball of discs with the given radius at the origin.
func ball(radius float64, points int) *Surfels {
	s := new(Surfels)
	random := rand.New(rand.NewPCG(1, 2))
	for range points {
		n := unit([3]float64{random.NormFloat64(), random.NormFloat64(), random.NormFloat64()})
		m := [3]float32{float32(n[0]), float32(n[1]), float32(n[2])}
		p := [3]float32{m[0] * float32(radius), m[1] * float32(radius), m[2] * float32(radius)}
		s.Positions, s.Normals = append(s.Positions, p), append(s.Normals, m)
		s.Colors = append(s.Colors, [3]uint8{uint8(127 + 120*n[0]), uint8(127 + 120*n[1]), 50})
		s.Radii = append(s.Radii, float32(3.2*math.Sqrt(4*math.Pi*radius*radius/float64(points))/2))
	}
	return s
}

// TestSurfels compares a ball of discs with the ball: no holes, and depths and colours of its front.
func TestSurfels(t *testing.T) {
	r := eye(t, "")
	c := &r.Cameras[0].Camera
	const radius = 0.25
	var m depth.Image
	n := NewRenderer(r, 0)
	for range 2 {
		n.RenderSurfels(ball(radius, 20000), 0, &m)
	}
	square, pixels := 0.0, 0
	for pixel, d := range m.Depth {
		x, y, _ := c.Deproject(float64(pixel%c.Width), float64(pixel/c.Width))
		ray := minus(c.Pose.Apply([3]float64{x, -y, -1}), c.Pose.Translation)
		eye := c.Pose.Translation
		a, b, q := dot(ray, ray), dot(ray, eye), dot(eye, eye)-radius*radius
		under := b*b - a*q
		closest := math.Sqrt(max(0, dot(eye, eye)-b*b/a))
		switch {
		case closest > radius*1.02 && d != 0, closest < radius*0.97 && d == 0:
			t.Fatalf("a ray that passes the centre at %g m has depth %d", closest, d)
		case closest > radius*0.9:
			continue
		}
		z := (-b - math.Sqrt(under)) / a
		off := float64(d)*c.Unit - z
		square, pixels = square+off*off, pixels+1
		want := 127 + 120*(eye[0]+ray[0]*z)/radius
		if math.Abs(float64(m.Colors[pixel][0])-want) > 6 {
			t.Fatalf("pixel %d is %v, expected red %g", pixel, m.Colors[pixel], want)
		}
	}
	if rms := math.Sqrt(square / float64(pixels)); pixels < 2000 || rms > 2e-4 {
		t.Errorf("error of %d depths is %g m rms, expected at most 0.2 mm", pixels, rms)
	}
}

// TestNoise checks deviations of depths on a plane, and that the noise of a frame does not depend on earlier frames.
func TestNoise(t *testing.T) {
	for _, test := range []struct {
		noise           string
		least, most, at float64 // millimetres at a depth
	}{{"white_mm: 2", 1.9, 2.1, 1}, {"growing_mm: 1", 0.93, 1.13, 1}, {"white_mm: 3, growing_mm: 4", 4.7, 5.4, 1}} {
		r := eye(t, test.noise)
		n, clean := NewRenderer(r, 0), NewRenderer(eye(t, ""), 0)
		mesh := sheet([4][3]float64{{-2, -2, 0}, {2, -2, 0}, {2, 2, 0}, {-2, 2, 0}})
		var m, again, truth depth.Image
		clean.RenderMesh(mesh, 3, &truth)
		n.RenderMesh(mesh, 3, &m)
		n.RenderMesh(mesh, 4, &again)
		if slices.Equal(again.Depth, m.Depth) {
			t.Errorf("%s: two frames have the same noise", test.noise)
		}
		if n.RenderMesh(mesh, 3, &again); !slices.Equal(again.Depth, m.Depth) {
			t.Errorf("%s: a frame has another noise when it is rendered again", test.noise)
		}
		r.Seed++
		if NewRenderer(r, 0).RenderMesh(mesh, 3, &again); slices.Equal(again.Depth, m.Depth) {
			t.Errorf("%s: two seeds have the same noise", test.noise)
		}
		square := 0.0
		for i, d := range m.Depth {
			off := (float64(d) - float64(truth.Depth[i])) * r.Cameras[0].Unit * 1000
			square += off * off
		}
		if rms := math.Sqrt(square / float64(len(m.Depth))); rms < test.least || rms > test.most {
			t.Errorf("%s: deviation %g mm, expected %g to %g", test.noise, rms, test.least, test.most)
		}
	}
}

// TestEdges checks the shares of pixels at the outline that are dropped or fly.
func TestEdges(t *testing.T) {
	mesh := sheet([4][3]float64{{-0.3, -0.3, 0}, {0.3, -0.3, 0}, {0.3, 0.3, 0}, {-0.3, 0.3, 0}})
	var m, truth depth.Image
	r := eye(t, "dropped_edges: 0.3, flying_pixels: 0.4")
	NewRenderer(eye(t, ""), 0).RenderMesh(mesh, 0, &truth)
	edges, dropped, flying := 0, 0, 0
	for frame := range int64(20) {
		NewRenderer(r, 0).RenderMesh(mesh, frame, &m)
		for i, d := range truth.Depth {
			if d == 0 {
				if m.Depth[i] != 0 {
					t.Fatalf("pixel %d beside the surface has depth %d", i, m.Depth[i])
				}
				continue
			}
			if truth.Depth[i-1] != 0 && truth.Depth[i+1] != 0 && truth.Depth[i-160] != 0 && truth.Depth[i+160] != 0 {
				if m.Depth[i] != d {
					t.Fatalf("pixel %d inside has depth %d, expected %d", i, m.Depth[i], d)
				}
				continue
			}
			edges++
			switch off := float64(m.Depth[i]) - float64(d); {
			case m.Depth[i] == 0:
				dropped++
			case off > 0 && off*r.Cameras[0].Unit <= behind:
				flying++
			case off != 0:
				t.Fatalf("pixel %d at the edge is off by %g units", i, off)
			}
		}
	}
	share := func(n int) float64 { return float64(n) / float64(edges) }
	if edges < 2000 || math.Abs(share(dropped)-0.3) > 0.04 || math.Abs(share(flying)-0.4) > 0.04 {
		t.Errorf("of %d pixels at edges %.2f are dropped and %.2f fly", edges, share(dropped), share(flying))
	}
}

// BenchmarkSurfels renders 150,000 discs in a camera of 640 × 576 pixels.
func BenchmarkSurfels(b *testing.B) {
	r, err := ParseRig([]byte("cameras: [{width: 640, height: 576, field_of_view: 65, position: [0, 0, 1.2], " +
		"look_at: [0, 0, 0], noise: {white_mm: 1, dropped_edges: 0.1, flying_pixels: 0.2}}]"))
	if err != nil {
		b.Fatal(err)
	}
	n, s := NewRenderer(r, 0), ball(0.35, 150_000)
	var m depth.Image
	n.RenderSurfels(s, 0, &m)
	b.ReportAllocs()
	for frame := int64(0); b.Loop(); frame++ {
		n.RenderSurfels(s, frame, &m)
	}
}
