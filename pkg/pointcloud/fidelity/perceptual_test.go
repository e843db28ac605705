package fidelity

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ribbon returns 12,000 random points on a wavy strip of 1 m by 5 cm with a texture.
func ribbon() *pointcloud.Cloud {
	random := rand.New(rand.NewPCG(1, 2))
	cloud := new(pointcloud.Cloud)
	for range 12000 {
		x, y := random.Float64()-0.5, 0.05*(random.Float64()-0.5)
		z := 0.02 * math.Sin(40*x) * math.Cos(60*y)
		bright := 128 + 60*math.Sin(90*x)*math.Cos(70*y) + 10*random.NormFloat64()
		level := func(share float64) uint8 { return uint8(max(0, min(255, bright*share))) }
		cloud.Append([3]float32{float32(x), float32(y), float32(z)}, [3]uint8{level(1), level(0.8), level(0.6)})
	}
	return cloud
}

// quantized returns a copy with positions rounded to a grid with a number of bits along the longest edge.
func quantized(cloud *pointcloud.Cloud, bits int) *pointcloud.Cloud {
	box := cloud.Bounds()
	longest := 0.0
	for axis := range 3 {
		longest = max(longest, float64(box.Max[axis]-box.Min[axis]))
	}
	step := longest / float64(int(1)<<bits-1)
	out := new(pointcloud.Cloud)
	for i, p := range cloud.Positions {
		for axis, v := range p {
			p[axis] = float32(math.Round(float64(v)/step) * step)
		}
		out.Append(p, cloud.Colors[i])
	}
	return out
}

// noisy returns a copy with Gaussian noise: of a share of the longest edge in each coordinate, and of a number of
// levels in the brightness.
func noisy(cloud *pointcloud.Cloud, share, levels float64) *pointcloud.Cloud {
	box := cloud.Bounds()
	longest := 0.0
	for axis := range 3 {
		longest = max(longest, float64(box.Max[axis]-box.Min[axis]))
	}
	random := rand.New(rand.NewPCG(3, 4))
	out := new(pointcloud.Cloud)
	for i, p := range cloud.Positions {
		for axis := range p {
			p[axis] += float32(share * longest * random.NormFloat64())
		}
		color, change := cloud.Colors[i], levels*random.NormFloat64()
		for channel, v := range color {
			color[channel] = uint8(max(0, min(255, math.Round(float64(v)+change))))
		}
		out.Append(p, color)
	}
	return out
}

// half returns every second point.
func half(cloud *pointcloud.Cloud) *pointcloud.Cloud {
	out := new(pointcloud.Cloud)
	for i := 0; i < cloud.Len(); i += 2 {
		out.Append(cloud.Positions[i], cloud.Colors[i])
	}
	return out
}

func perceptual(t *testing.T, r *Reference, decoded *pointcloud.Cloud) Perceptual {
	t.Helper()
	m, err := r.Perceptual(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func reference(t *testing.T, cloud *pointcloud.Cloud) *Reference {
	t.Helper()
	r, err := NewReference(cloud)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAuthorsValues compares PCQM with the authors' program (github.com/MEPP-team/PCQM, commit 2a2c410) for the same
// clouds, whose coinciding points were merged.
func TestAuthorsValues(t *testing.T) {
	cloud := ribbon()
	r := reference(t, cloud)
	for _, test := range []struct {
		name    string
		decoded *pointcloud.Cloud
		pcqm    PCQM
	}{
		{"9 bits", quantized(cloud, 9), PCQM{0.00651033, 0.897546, 7.94594e-06, 0.0806137}},
		{"11 bits", quantized(cloud, 11), PCQM{0.00508001, 0.876105, 1.87117e-07, 0.00500145}},
		{"noise of 0.1 %", noisy(cloud, 0.001, 0), PCQM{0.0115532, 0.913657, 0.000860626, 0.320028}},
		{"colours, 5 levels", noisy(cloud, 0, 5), PCQM{0.00160121, 0, 0.000251553, 0.0788035}},
		{"half of the points", half(cloud), PCQM{0.00945329, 0.64623, 0.00116298, 0.269386}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := perceptual(t, r, test.decoded)
			for _, v := range []struct {
				what      string
				got, want float64
			}{
				{"PCQM", m.PCQM.Score, test.pcqm.Score},
				{"PCQM curvature", m.PCQM.Curvature, test.pcqm.Curvature},
				{"PCQM lightness", m.PCQM.Lightness, test.pcqm.Lightness},
				{"PCQM texture", m.PCQM.Texture, test.pcqm.Texture},
			} {
				if math.Abs(v.got-v.want) > 1e-4*v.want+1e-12 {
					t.Errorf("%s is %g, want %g", v.what, v.got, v.want)
				}
			}
		})
	}
}

// TestPointSSIMOfAuthors compares PointSSIM of distances and luma with the authors' scripts in GNU Octave
// (github.com/mmspg/pointssim, commit 2358dd3) for the same clouds. On the grid of 9 bits, several points are equally
// near, of which the programs may choose different ones.
func TestPointSSIMOfAuthors(t *testing.T) {
	cloud := ribbon()
	r := reference(t, cloud)
	for _, test := range []struct {
		name                       string
		decoded                    *pointcloud.Cloud
		geometry, color, tolerance float64
	}{
		{"9 bits", quantized(cloud, 9), 0.707977, 0.757561, 3e-4},
		{"noise of 0.1 %", noisy(cloud, 0.001, 0), 0.664250, 0.792429, 1e-6},
		{"colours, 5 levels", noisy(cloud, 0, 5), 1, 0.745851, 1e-6},
	} {
		m := perceptual(t, r, test.decoded).PointSSIM
		if math.Abs(m.Geometry-test.geometry) > test.tolerance || math.Abs(m.Color-test.color) > test.tolerance {
			t.Errorf("%s: distances %.6f, luma %.6f, want %.6f and %.6f", test.name, m.Geometry, m.Color,
				test.geometry, test.color)
		}
	}
}

// TestPerceptualOfSame expects no difference between equal clouds, whatever the order of the points.
func TestPerceptualOfSame(t *testing.T) {
	cloud, reversed := ribbon(), new(pointcloud.Cloud)
	for i := range cloud.Len() {
		j := cloud.Len() - 1 - i
		reversed.Append(cloud.Positions[j], cloud.Colors[j])
	}
	m := perceptual(t, reference(t, cloud), reversed)
	if want := (PointSSIM{1, 1, 1, 1}); m.PointSSIM != want {
		t.Errorf("PointSSIM is %+v, want %+v", m.PointSSIM, want)
	}
	for _, v := range []float64{m.PCQM.Score, m.PCQM.Curvature, m.PCQM.Lightness, m.PCQM.Texture} {
		if math.Abs(v) > 1e-12 {
			t.Errorf("PCQM is %+v, want zeros", m.PCQM)
		}
	}
}

// TestPerceptualOrder expects the same measures for the points in any order.
func TestPerceptualOrder(t *testing.T) {
	cloud := ribbon()
	decoded, shuffled := quantized(cloud, 9), new(pointcloud.Cloud)
	for _, i := range rand.New(rand.NewPCG(5, 6)).Perm(decoded.Len()) {
		shuffled.Append(decoded.Positions[i], decoded.Colors[i])
	}
	r := reference(t, cloud)
	if a, b := perceptual(t, r, decoded), perceptual(t, r, shuffled); a != b {
		t.Errorf("got %+v, and %+v in another order", a, b)
	}
}

// TestPerceptualMonotone expects that every measure gets worse with fewer bits and with more noise.
func TestPerceptualMonotone(t *testing.T) {
	cloud := ribbon()
	r := reference(t, cloud)
	for name, worse := range map[string][]*pointcloud.Cloud{
		"bits":  {quantized(cloud, 12), quantized(cloud, 10), quantized(cloud, 8)},
		"noise": {noisy(cloud, 0.0001, 2), noisy(cloud, 0.001, 10), noisy(cloud, 0.003, 20)},
	} {
		last := Perceptual{PointSSIM: PointSSIM{1, 1, 1, 1}}
		for i, decoded := range worse {
			m := perceptual(t, r, decoded)
			if m.PCQM.Score <= last.PCQM.Score || m.PCQM.Lightness <= last.PCQM.Lightness ||
				m.PCQM.Texture <= last.PCQM.Texture || m.PointSSIM.Geometry >= last.PointSSIM.Geometry ||
				m.PointSSIM.Normals >= last.PointSSIM.Normals || m.PointSSIM.Curvature >= last.PointSSIM.Curvature ||
				m.PointSSIM.Color >= last.PointSSIM.Color {
				t.Errorf("%s, step %d: got %+v after %+v, want worse values", name, i, m, last)
			}
			last = m
		}
	}
}

// TestPerceptualScale expects the same measures if both clouds are scaled by a power of two, because all radii are
// relative to the reference's longest edge.
func TestPerceptualScale(t *testing.T) {
	cloud := ribbon()
	scaled := func(c *pointcloud.Cloud) *pointcloud.Cloud {
		out := new(pointcloud.Cloud)
		for i, p := range c.Positions {
			out.Append([3]float32{2 * p[0], 2 * p[1], 2 * p[2]}, c.Colors[i])
		}
		return out
	}
	decoded := quantized(cloud, 10)
	a := perceptual(t, reference(t, cloud), decoded)
	b := perceptual(t, reference(t, scaled(cloud)), scaled(decoded))
	near(t, "PCQM", b.PCQM.Score, a.PCQM.Score)
	near(t, "PointSSIM of geometry", b.PointSSIM.Geometry, a.PointSSIM.Geometry)
	near(t, "PointSSIM of normals", b.PointSSIM.Normals, a.PointSSIM.Normals)
	near(t, "PointSSIM of curvature", b.PointSSIM.Curvature, a.PointSSIM.Curvature)
	near(t, "PointSSIM of colours", b.PointSSIM.Color, a.PointSSIM.Color)
}

// TestPerceptualOfFewPoints compares clouds with fewer points than a neighbourhood.
func TestPerceptualOfFewPoints(t *testing.T) {
	line := new(pointcloud.Cloud)
	line.Append([3]float32{}, grey)
	for i := range 20 {
		line.Append([3]float32{float32(i + 1), 0, 0}, [3]uint8{uint8(10 * i), 100, 100})
		m := perceptual(t, reference(t, line), line)
		if m.PCQM.Score > 1e-12 || m.PointSSIM.Geometry != 1 || m.PointSSIM.Color != 1 {
			t.Errorf("%d points on a line: got %+v, want no difference", line.Len(), m)
		}
		if !math.IsNaN(m.PointSSIM.Curvature) || !math.IsNaN(m.PointSSIM.Normals) {
			t.Errorf("%d points on a line: got %+v, want no curvature and no normals", line.Len(), m)
		}
		single := new(pointcloud.Cloud)
		single.Append([3]float32{0.25, 0.5, 0}, grey)
		if m := perceptual(t, reference(t, line), single); !(m.PCQM.Score >= 0) || !(m.PointSSIM.Color <= 1) {
			t.Errorf("%d points and one: got %+v", line.Len(), m)
		}
	}
}

func TestPerceptualErrors(t *testing.T) {
	nan := floor(grey)
	nan.Positions[7][1] = float32(math.Inf(1))
	r := reference(t, floor(grey))
	for name, cloud := range map[string]*pointcloud.Cloud{"empty": {}, "not finite": nan} {
		if _, err := r.Perceptual(cloud); !errors.Is(err, ErrCloud) {
			t.Errorf("%s: got %v, want ErrCloud", name, err)
		}
	}
	single := new(pointcloud.Cloud)
	single.Append([3]float32{1, 2, 3}, grey)
	if _, err := reference(t, single).Perceptual(floor(grey)); !errors.Is(err, ErrCloud) {
		t.Errorf("a reference of one point: got %v, want ErrCloud", err)
	}
}

// TestLightness compares with values of L_data.txt in the authors' program, a table of LAB2000HL.
func TestLightness(t *testing.T) {
	for color, want := range map[[3]uint8]float64{{}: 0, {255, 255, 255}: 75.15, {119, 119, 119}: 37.6} {
		if got := lightness(color); math.Abs(got-want) > 0.05 {
			t.Errorf("%v: got %.3f, want %.3f", color, got, want)
		}
	}
	table := lightnessTable()
	for l, want := range map[int]float64{1: 0.5749, 10: 5.9861, 50: 37.5766, 100: 75.1532} {
		if got := table[l*100]; math.Abs(got-want) > 1e-4 {
			t.Errorf("L* %d: got %.4f, want %.4f", l, got, want)
		}
	}
}

// TestQuadric fits a paraboloid in a rotated frame.
func TestQuadric(t *testing.T) {
	cloud := new(pointcloud.Cloud)
	var points []int
	for x := -3; x <= 3; x++ {
		for y := -3; y <= 3; y++ {
			a, b := float64(x)/64, float64(y)/64
			points = append(points, cloud.Len())
			cloud.Append([3]float32{float32(a*a + 0.5*b*b), float32(a), float32(b)}, grey)
		}
	}
	q := new(fitter).fit(cloud, points, [3]float32{0.25, 0, 0})
	if got := math.Abs(q.curvature()); math.Abs(got-1.5) > 1e-4 {
		t.Errorf("the mean curvature is %g, want 1.5", got)
	}
	if n := q.normal(); math.Abs(math.Abs(n[0])-1) > 1e-6 {
		t.Errorf("the normal is %v, want the x axis", n)
	}
	if at, distance := q.project([3]float32{0.25, 0, 0}); math.Abs(distance-0.25) > 1e-6 || math.Abs(at[0]) > 1e-6 {
		t.Errorf("the projection is at %v, %g m away, want the origin, 0.25 m away", at, distance)
	}
}

func BenchmarkPerceptual(b *testing.B) {
	cloud := ribbon()
	r, err := NewReference(cloud)
	if err != nil {
		b.Fatal(err)
	}
	decoded := quantized(cloud, 10)
	for b.Loop() {
		if _, err := r.Perceptual(decoded); err != nil {
			b.Fatal(err)
		}
	}
}
