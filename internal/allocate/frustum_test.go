package allocate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// cube is centred at a position, with edges of the given length.
func cube(x, y, z, edge float32) volumetric.BoundingBox {
	h := edge / 2
	return volumetric.BoundingBox{Min: [3]float32{x - h, y - h, z - h}, Max: [3]float32{x + h, y + h, z + h}}
}

// areaOf returns the share of the view that a box covers.
func areaOf(t *testing.T, v Viewpoint, pose Pose, b volumetric.BoundingBox) float64 {
	t.Helper()
	f, ok := newFrustum(&v)
	stand, placed := f.place(&pose)
	box, known := newBox(&b)
	if !ok || !placed || !known {
		t.Fatalf("not usable: %+v, %+v, %+v", v, pose, b)
	}
	area, _ := f.area(&stand, &box)
	return area
}

func TestAreaOfBoxes(t *testing.T) {
	front, widest, wider := eyeAt(0, 0, 0, 0), eyeAt(0, 0, 0, 0), eyeAt(0, 0, 0, 0)
	widest.FOV, wider.FOV = 2*widestHalf, 170*math.Pi/180
	quarter := math.Sqrt2 / 2
	// The near face, 1 m wide at 2 m, in a view of 160°, which is 22.7 m wide there.
	small := 1 / math.Pow(4*math.Tan(80*math.Pi/180), 2)
	for name, c := range map[string]struct {
		eye  Viewpoint
		pose Pose
		box  volumetric.BoundingBox
		want float64
	}{
		// The near face is 1 m wide at 2 m, where a view of 90° is 4 m wide.
		"ahead":              {front, Pose{}, cube(0, 0, -2.5, 1), 1. / 16},
		"ahead, widest view": {widest, Pose{}, cube(0, 0, -2.5, 1), small},
		"ahead, wider view":  {wider, Pose{}, cube(0, 0, -2.5, 1), small},
		"behind":             {front, Pose{}, cube(0, 0, 2.5, 1), 0},
		"left of the view":   {front, Pose{}, cube(-20, 0, -2.5, 1), 0},
		"around the eye":     {front, Pose{}, cube(0, 0, 0, 1), 1},
		"fills the view":     {front, Pose{}, cube(0, 0, -2.5, 4.9), 1},
		"half of it": {front, Pose{},
			volumetric.BoundingBox{Min: [3]float32{0, -9, -3}, Max: [3]float32{9, 9, -1}}, 0.5},
		"moved":  {front, Pose{Position: [3]float64{0, 0, -2.5}}, cube(0, 0, 0, 1), 1. / 16},
		"scaled": {front, Pose{Position: [3]float64{0, 0, -5}, Scale: 2}, cube(0, 0, 0, 1), 1. / 16},
		"turned object": {front, Pose{Position: [3]float64{0, 0, -2.5},
			Orientation: [4]float64{0, quarter, 0, quarter}}, cube(0, 0, 0, 1), 1. / 16},
		"turned eye":  {eyeAt(0, 0, 0, 90), Pose{}, cube(-2.5, 0, 0, 1), 1. / 16},
		"turned away": {eyeAt(0, 0, 0, 90), Pose{}, cube(2.5, 0, 0, 1), 0},
		"moved eye":   {eyeAt(3, 2, 1, 0), Pose{}, cube(3, 2, -1.5, 1), 1. / 16},
		"through the near one": {front, Pose{},
			volumetric.BoundingBox{Min: [3]float32{-9, -9, -2}, Max: [3]float32{9, -1, 2}}, 0.25},
	} {
		if got := areaOf(t, c.eye, c.pose, c.box); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %.4f of the view, expected %.4f", name, got, c.want)
		}
	}
}

// Ray casting over the view has the same result as clipping.
func TestAreaAgreesWithRays(t *testing.T) {
	race.SkipSequential(t)
	r := rand.New(rand.NewPCG(11, 12))
	around := func(size float64) vector {
		return vector{size * r.NormFloat64(), size * r.NormFloat64(), size * r.NormFloat64()}
	}
	for range 150 {
		v := Viewpoint{Position: around(1), Orientation: rotationBy(around(1)), FOV: 0.5 + 1.5*r.Float64(),
			Aspect: 0.6 + r.Float64()}
		pose := Pose{Position: around(1), Orientation: rotationBy(around(1)), Scale: 0.5 + r.Float64()}
		low, size := around(0.5), around(1)
		var b volumetric.BoundingBox
		for axis := range 3 {
			b.Min[axis], b.Max[axis] = float32(low[axis]), float32(low[axis]+0.05+math.Abs(size[axis]))
		}
		const rays = 80
		hits := 0
		for i := range rays {
			for j := range rays {
				y := math.Tan(v.FOV/2) * (2*(float64(i)+0.5)/rays - 1)
				x := math.Tan(v.FOV/2) * v.Aspect * (2*(float64(j)+0.5)/rays - 1)
				if hit(v, pose, b, vector{x, y, -1}) {
					hits++
				}
			}
		}
		want := float64(hits) / (rays * rays)
		if got := areaOf(t, v, pose, b); math.Abs(got-want) > 0.02 {
			t.Errorf("%.3f of the view, rays say %.3f: %+v %+v %+v", got, want, v, pose, b)
		}
	}
}

// hit reports whether a ray from the eye meets the box, by slabs.
func hit(v Viewpoint, pose Pose, b volumetric.BoundingBox, ray vector) bool {
	back := rotation(pose.Orientation).inverse()
	ray = back.apply(rotation(v.Orientation).apply(ray))
	eye := back.apply(vector(v.Position).minus(pose.Position)).times(1 / pose.Scale)
	from, to := 0.0, math.Inf(1)
	for axis := range 3 {
		a, z := (float64(b.Min[axis])-eye[axis])/ray[axis], (float64(b.Max[axis])-eye[axis])/ray[axis]
		from, to = max(from, min(a, z)), min(to, max(a, z))
	}
	return from <= to
}

// TestAPersonBeyondTheEdge places a part of a person, 1.8 m high and 30 cm wide, around the eye: its height does not
// bring it closer to the side of the view.
func TestAPersonBeyondTheEdge(t *testing.T) {
	v := eyeAt(0, 1.5, 0, 0)
	f, _ := newFrustum(&v)
	part, _ := newBox(&volumetric.BoundingBox{Min: [3]float32{-0.15, 0, -0.15}, Max: [3]float32{0.15, 1.8, 0.15}})
	for _, c := range []struct{ left, want float64 }{{0, 0}, {40, 0}, {70, 25 - 6.3}, {90, 45 - 6.3},
		{180, 135 - 6.3}} {
		turned := rotationBy(vector{0, c.left * math.Pi / 180, 0})
		pose := Pose{Position: turned.apply(vector{0, 0, -1.5}), Orientation: turned}
		stand, _ := f.place(&pose)
		// 15 cm at 1.35 m are 6.3°, and behind the eye the far corners are closer to the view.
		if got := f.beyond(&stand, &part) * 180 / math.Pi; math.Abs(got-c.want) > 1.5 {
			t.Errorf("%v° to the left: %.1f° beyond the edge, expected %.1f", c.left, got, c.want)
		}
	}
}

func TestBeyondTheEdge(t *testing.T) {
	v := eyeAt(0, 0, 0, 0)
	f, _ := newFrustum(&v)
	pose := Pose{}
	stand, _ := f.place(&pose)
	for _, c := range []struct{ left, up, want float64 }{{0, 0, 0}, {44, 0, 0}, {65, 0, 20}, {0, 65, 20},
		{180, 0, 135}} {
		direction := rotationBy(vector{0, c.left * math.Pi / 180, 0}).after(
			rotationBy(vector{c.up * math.Pi / 180, 0, 0})).apply(vector{0, 0, -1})
		b, _ := newBox(&volumetric.BoundingBox{
			Min: [3]float32{float32(direction[0]), float32(direction[1]), float32(direction[2])},
			Max: [3]float32{float32(direction[0]), float32(direction[1]), float32(direction[2]) + 1e-3},
		})
		if got := f.beyond(&stand, &b) * 180 / math.Pi; math.Abs(got-c.want) > 1 {
			t.Errorf("%v° to the left and %v° up: %.1f° beyond the edge, expected %v", c.left, c.up, got, c.want)
		}
	}
}
