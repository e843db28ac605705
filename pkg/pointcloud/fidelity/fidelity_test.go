package fidelity

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// floor returns a grid of 40×40 points, 1 cm apart, in the plane y = 1.
func floor(color [3]uint8) *pointcloud.Cloud {
	cloud := new(pointcloud.Cloud)
	for x := range 40 {
		for z := range 40 {
			cloud.Append([3]float32{float32(x) * 0.01, 1, float32(z) * 0.01}, color)
		}
	}
	return cloud
}

func moved(cloud *pointcloud.Cloud, by [3]float32, color [3]uint8) *pointcloud.Cloud {
	other := new(pointcloud.Cloud)
	for _, p := range cloud.Positions {
		other.Append([3]float32{p[0] + by[0], p[1] + by[1], p[2] + by[2]}, color)
	}
	return other
}

func compare(t *testing.T, reference, decoded *pointcloud.Cloud) Measures {
	t.Helper()
	r, err := NewReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Compare(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// near fails the test if a value differs from the expected value by more than a thousandth.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got == want {
		return
	}
	if !(math.Abs(got-want) <= 1e-3*math.Abs(want)) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

var grey = [3]uint8{100, 100, 100}

func TestSame(t *testing.T) {
	inf := math.Inf(1)
	want := Measures{Geometry{0, inf}, Geometry{0, inf}, Color{inf, inf, inf, inf}}
	if got := compare(t, floor(grey), floor(grey)); got != want {
		t.Errorf("got %+v, want no error", got)
	}
}

// TestPlane moves a plane across and along itself. Its longest edge is 0.39 m.
func TestPlane(t *testing.T) {
	across := compare(t, floor(grey), moved(floor(grey), [3]float32{0, 0.002, 0}, grey))
	near(t, "across: D1", across.PointToPoint.MSE, 4e-6)
	near(t, "across: D2", across.PointToPlane.MSE, 4e-6)
	near(t, "across: D1 PSNR", across.PointToPoint.PSNR, 10*math.Log10(3*0.39*0.39/4e-6))
	along := compare(t, floor(grey), moved(floor(grey), [3]float32{0.0025, 0, 0}, grey))
	near(t, "along: D1", along.PointToPoint.MSE, 6.25e-6)
	if along.PointToPlane.MSE > 1e-14 || along.PointToPlane.PSNR < 100 {
		t.Errorf("along: D2 is %+v, want next to nothing", along.PointToPlane)
	}
}

// TestWorseDirectionCounts compares a half with the whole: every point of the half has an equal
// point in the whole, but not vice versa.
func TestWorseDirectionCounts(t *testing.T) {
	whole, half := floor(grey), new(pointcloud.Cloud)
	for i, p := range whole.Positions {
		if i/40%2 == 0 {
			half.Append(p, grey)
		}
	}
	for _, m := range []Measures{compare(t, whole, half), compare(t, half, whole)} {
		// Half of the points are 1 cm from the nearest.
		near(t, "D1", m.PointToPoint.MSE, 0.5e-4)
	}
}

func TestColor(t *testing.T) {
	inf := math.Inf(1)
	// 10 levels of grey are 10 levels of luma and no chroma.
	lighter := compare(t, floor(grey), floor([3]uint8{110, 110, 110})).Color
	near(t, "Y", lighter.Y, 20*math.Log10(255./10))
	near(t, "all", lighter.All, 10*math.Log10(255*255/75.))
	if lighter.Cb < 200 || lighter.Cr < 200 {
		t.Errorf("got %+v, want no error of chroma", lighter)
	}
	// 10 levels of blue are 0.722 of luma, 10·0.9278/1.8556 = 5 of Cb and -0.722/1.5748 of Cr.
	bluer := compare(t, floor(grey), floor([3]uint8{100, 100, 110})).Color
	near(t, "Y", bluer.Y, 20*math.Log10(255/0.722))
	near(t, "Cb", bluer.Cb, 20*math.Log10(255./5))
	near(t, "Cr", bluer.Cr, 20*math.Log10(255*1.5748/0.722))
	if got := compare(
		t,
		floor(grey),
		moved(floor(grey), [3]float32{0, 0.001, 0}, grey),
	).Color; got != (Color{inf, inf, inf, inf}) {
		t.Errorf("moved: got %+v, want exact colours", got)
	}
}

// TestCoinciding expects that coinciding points count as one point with their mean colour.
func TestCoinciding(t *testing.T) {
	double := floor([3]uint8{90, 90, 90})
	double.AppendCloud(floor([3]uint8{110, 110, 110}))
	if got := compare(t, floor(grey), double); got != compare(t, floor(grey), floor(grey)) {
		t.Errorf("got %+v, want no error", got)
	}
}

// sphere returns random points on a sphere with a radius of 1 m.
func sphere(points int) *pointcloud.Cloud {
	random := rand.New(rand.NewPCG(1, 2))
	cloud := new(pointcloud.Cloud)
	for range points {
		v := [3]float64{random.NormFloat64(), random.NormFloat64(), random.NormFloat64()}
		length := math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])
		cloud.Append([3]float32{float32(v[0] / length), float32(v[1] / length), float32(v[2] / length)}, grey)
	}
	return cloud
}

// TestNormals expects that normals of a sphere point away from its centre.
func TestNormals(t *testing.T) {
	cloud := sphere(20000)
	r, err := NewReference(cloud)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, n := range r.side.normals {
		p := r.side.cloud.Positions[i]
		cosine := n[0]*float64(p[0]) + n[1]*float64(p[1]) + n[2]*float64(p[2])
		sum += math.Acos(min(1, math.Abs(cosine)))
	}
	// Twelve neighbours reach 2.4 cm, over which the sphere bends by 1.4°.
	if mean := sum / 20000 * 180 / math.Pi; mean > 1.5 {
		t.Errorf("normals are off by %.2f° in the mean, want at most 1.5°", mean)
	}
}

// TestQuantized rounds positions to a grid much finer than the distance of the points. The error is
// that of rounding: a twelfth of the square of the step on each axis, and a third of this sum
// across the surface.
func TestQuantized(t *testing.T) {
	cloud, rounded := sphere(5000), new(pointcloud.Cloud)
	const step = 0.002
	for _, p := range cloud.Positions {
		for axis, v := range p {
			p[axis] = float32(math.Round(float64(v)/step) * step)
		}
		rounded.Append(p, grey)
	}
	m := compare(t, cloud, rounded)
	if got, want := m.PointToPoint.MSE, step*step/4; math.Abs(got/want-1) > 0.05 {
		t.Errorf("D1 is %g, want about %g", got, want)
	}
	if got, want := m.PointToPlane.MSE, step*step/12; math.Abs(got/want-1) > 0.1 {
		t.Errorf("D2 is %g, want about %g", got, want)
	}
}

// TestFewPoints compares clouds without a surface.
func TestFewPoints(t *testing.T) {
	line := new(pointcloud.Cloud)
	for i := range 20 {
		line.Append([3]float32{float32(i), 0, 0}, grey)
		if m := compare(t, line, line); m.PointToPlane.MSE != 0 || m.PointToPoint.MSE != 0 {
			t.Errorf("%d points on a line: got %+v, want no error", i+1, m)
		}
	}
}

func TestErrors(t *testing.T) {
	nan := floor(grey)
	nan.Positions[7][1] = float32(math.NaN())
	plain := floor(grey)
	plain.Colors = plain.Colors[:10]
	r, err := NewReference(floor(grey))
	if err != nil {
		t.Fatal(err)
	}
	for name, cloud := range map[string]*pointcloud.Cloud{"empty": {}, "not a number": nan, "without colours": plain} {
		if _, err := NewReference(cloud); !errors.Is(err, ErrCloud) {
			t.Errorf("%s: got %v, want ErrCloud", name, err)
		}
		if _, err := r.Compare(cloud); !errors.Is(err, ErrCloud) {
			t.Errorf("%s: got %v, want ErrCloud", name, err)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	cloud := sphere(70000)
	r, err := NewReference(cloud)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.Compare(cloud); err != nil {
			b.Fatal(err)
		}
	}
}
