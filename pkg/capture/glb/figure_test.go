package glb

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func figure(t testing.TB, b *builder, rate float64) *Figure {
	t.Helper()
	f, err := New(b.file(t), Config{Points: 500, Seed: 1, FrameRate: rate})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func load(t testing.TB, f *Figure, index int) *pointcloud.Cloud {
	t.Helper()
	cloud := new(pointcloud.Cloud)
	if err := f.Load(index, cloud); err != nil {
		t.Fatal(err)
	}
	return cloud
}

// corners checks the bounding box of a cloud with the tolerance of 500 random points at the rim.
func corners(t *testing.T, what string, cloud *pointcloud.Cloud, low, high [3]float32) {
	t.Helper()
	box := cloud.Bounds()
	for axis := range 3 {
		slack := 0.07*(high[axis]-low[axis]) + 1e-4
		if box.Min[axis] < low[axis]-1e-4 || box.Min[axis] > low[axis]+slack || box.Max[axis] > high[axis]+1e-4 ||
			box.Max[axis] < high[axis]-slack {
			t.Errorf("%s: points within %v, expected %v to %v", what, box, low, high)
			return
		}
	}
}

func TestStill(t *testing.T) {
	b := newBuilder()
	mesh, _ := b.square()
	b.add("nodes", map[string]any{"mesh": mesh, "translation": []float64{1, 2, 3}, "scale": []float64{2, 1, 1}})
	b.add(
		"nodes",
		map[string]any{"children": []int{0}, "matrix": []float64{1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 10, 1}},
	)
	f := figure(t, b, 30)
	cloud := load(t, f, 0)
	// (x, y, z) becomes (2 x + 1, y + 2, 3), and that (x, z, 10 - y).
	corners(t, "a square in a turned node", cloud, [3]float32{1, 3, 7}, [3]float32{3, 3, 8})
	if f.Len() != 1 || f.Triangles() != 2 || cloud.Len() != 500 || cloud.Colors[0] != [3]uint8{255, 255, 255} {
		t.Errorf("%d frames of %d triangles, %d points of %v", f.Len(), f.Triangles(), cloud.Len(), cloud.Colors[0])
	}
	// Every quarter of the surface has a quarter of the points: sqrt(500 · 3/16) is 10, and strata make it less.
	quarter := 0
	for _, p := range cloud.Positions {
		if p[0] < 2 && p[2] < 7.5 {
			quarter++
		}
	}
	if quarter < 95 || quarter > 155 {
		t.Errorf("a quarter of the surface has %d of 500 points", quarter)
	}
}

func TestSceneShowsItsNodes(t *testing.T) {
	b := newBuilder()
	mesh, _ := b.square()
	b.add("nodes", map[string]any{"mesh": mesh})
	b.add("nodes", map[string]any{"mesh": mesh, "translation": []float64{5, 0, 0}})
	corners(t, "no scene", load(t, figure(t, b, 30), 0), [3]float32{0, 0, 0}, [3]float32{6, 1, 0})
	b.add("scenes", map[string]any{"nodes": []int{1}})
	b.doc["scene"] = 0
	corners(t, "a scene", load(t, figure(t, b, 30), 0), [3]float32{5, 0, 0}, [3]float32{6, 1, 0})
}

func TestModes(t *testing.T) {
	for mode, triangles := range map[int]int{0: 0, 1: 0, 4: 1, 5: 2, 6: 2} { // points, lines, triangles, strip, fan
		b := newBuilder()
		mesh, primitive := b.square()
		primitive["mode"] = mode
		delete(primitive, "indices")
		b.add("nodes", map[string]any{"mesh": mesh})
		f, err := New(b.file(t), Config{Points: 10, FrameRate: 1})
		if triangles == 0 {
			if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "no triangles") {
				t.Errorf("mode %d: %v", mode, err)
			}
		} else if err != nil || f.Triangles() != triangles {
			t.Errorf("mode %d: %v", mode, err)
		}
	}
}

// TestAnimation moves a square with all interpolations: the four frames of a one-second animation
// are at 0, 1/4, 1/2 and 3/4 s.
func TestAnimation(t *testing.T) {
	half := float32(math.Sqrt(0.5))
	tests := []struct {
		name      string
		animate   func(b *builder)
		low, high [4][3]float32
	}{
		{
			"linear translation",
			func(b *builder) { b.animate(0, "translation", "LINEAR", []float32{0, 1}, "VEC3", 0, 0, 0, 4, 0, 0) },
			[4][3]float32{
				{0, 0, 0},
				{1, 0, 0},
				{2, 0, 0},
				{3, 0, 0},
			},
			[4][3]float32{{1, 1, 0}, {2, 1, 0}, {3, 1, 0}, {4, 1, 0}},
		},
		{"steps", func(b *builder) {
			b.animate(0, "translation", "STEP", []float32{0, 0.5, 1}, "VEC3", 0, 0, 0, 4, 0, 0, 9, 0, 0)
		},
			[4][3]float32{
				{0, 0, 0},
				{0, 0, 0},
				{4, 0, 0},
				{4, 0, 0},
			}, [4][3]float32{{1, 1, 0}, {1, 1, 0}, {5, 1, 0}, {5, 1, 0}}},
		// Between 0 and 4 with tangents of 8 at both ends: p(t) = 8 (t³ - 2 t² + t) + 4 (3 t² - 2
		// t³) + 8 (t³ - t²) = 8 t³ - 12 t² + 8 t.
		{"splines", func(b *builder) {
			b.animate(
				0,
				"translation",
				"CUBICSPLINE",
				[]float32{0, 1},
				"VEC3",
				7,
				7,
				7,
				0,
				0,
				0,
				8,
				0,
				0,
				8,
				0,
				0,
				4,
				0,
				0,
				7,
				7,
				7,
			)
		},
			[4][3]float32{
				{0, 0, 0},
				{1.375, 0, 0},
				{2, 0, 0},
				{2.625, 0, 0},
			}, [4][3]float32{{1, 1, 0}, {2.375, 1, 0}, {3, 1, 0}, {3.625, 1, 0}}},
		{"scale", func(b *builder) { b.animate(0, "scale", "LINEAR", []float32{0, 1}, "VEC3", 1, 1, 1, 5, 1, 1) },
			[4][3]float32{}, [4][3]float32{{1, 1, 0}, {2, 1, 0}, {3, 1, 0}, {4, 1, 0}}},
		// This is half a turn about z in a second. The second key has inverted signs, but the
		// rotation still uses the shorter direction.
		{"rotation", func(b *builder) {
			b.animate(0, "rotation", "LINEAR", []float32{0, 0.5, 1}, "VEC4", 0, 0, 0, 1, 0, 0, -half, -half, 0, 0, 1, 0)
		},
			[4][3]float32{
				{0, 0, 0},
				{-half, 0, 0},
				{-1, 0, 0},
				{-2 * half, -half, 0},
			}, [4][3]float32{{1, 1, 0}, {half, 2 * half, 0}, {0, 1, 0}, {0, half, 0}}},
		{"before the first key and after the last", func(b *builder) {
			b.animate(0, "translation", "LINEAR", []float32{0.25, 0.5}, "VEC3", 1, 0, 0, 2, 0, 0)
			b.animate(0, "scale", "LINEAR", []float32{0, 1}, "VEC3", 1, 1, 1, 1, 1, 1)
		},
			[4][3]float32{
				{1, 0, 0},
				{1, 0, 0},
				{2, 0, 0},
				{2, 0, 0},
			}, [4][3]float32{{2, 1, 0}, {2, 1, 0}, {3, 1, 0}, {3, 1, 0}}},
	}
	for _, test := range tests {
		b := newBuilder()
		mesh, _ := b.square()
		b.add("nodes", map[string]any{"mesh": mesh})
		test.animate(b)
		f := figure(t, b, 4)
		if f.Len() != 4 {
			t.Fatalf("%s: %d frames", test.name, f.Len())
		}
		for i := range 4 {
			corners(t, test.name, load(t, f, i), test.low[i], test.high[i])
		}
	}
}

func TestMorphTargets(t *testing.T) {
	b := newBuilder()
	mesh, primitive := b.square()
	up := b.floats("VEC3", 4, 0, 0, 2, 0, 0, 2, 0, 0, 2, 0, 0, 2)
	primitive["targets"] = []any{map[string]any{"POSITION": up}, map[string]any{"NORMAL": up}}
	b.add("nodes", map[string]any{"mesh": mesh, "weights": []float64{0.5, 1}})
	corners(t, "weights of the node", load(t, figure(t, b, 4), 0), [3]float32{0, 0, 1}, [3]float32{1, 1, 1})
	b.animate(0, "weights", "LINEAR", []float32{0, 1}, "SCALAR", 0, 0, 4, 0)
	corners(t, "weights of the animation", load(t, figure(t, b, 4), 2), [3]float32{0, 0, 4}, [3]float32{1, 1, 4})
}

// TestSkin binds the lower edge of the square to a resting joint, and the upper edge to a moving
// one. The weights do not sum up to 1, as in the output of some exporters.
func TestSkin(t *testing.T) {
	b := newBuilder()
	mesh, primitive := b.square()
	attribute(
		primitive,
		"JOINTS_0",
		b.numbers("VEC4", typeUint8, 4, []uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}),
	)
	attribute(primitive, "WEIGHTS_0", b.floats("VEC4", 4, 0.5, 0, 0, 0, 0.5, 0, 0, 0, 0.5, 0, 0, 0, 0.5, 0, 0, 0))
	b.add(
		"nodes",
		map[string]any{"mesh": mesh, "skin": 0, "translation": []float64{100, 0, 0}},
	) // a skin ignores its node's transform
	b.add("nodes", map[string]any{"translation": []float64{0, 0, 1}})
	b.add("nodes", map[string]any{"translation": []float64{0, 3, 0}})
	// The second joint was at (0, 1, 0) when the mesh was bound to it. Matrices are in column-major
	// order.
	inverse := b.floats(
		"MAT4",
		2,
		1,
		0,
		0,
		0,
		0,
		1,
		0,
		0,
		0,
		0,
		1,
		0,
		0,
		0,
		0,
		1,
		1,
		0,
		0,
		0,
		0,
		1,
		0,
		0,
		0,
		0,
		1,
		0,
		0,
		-1,
		0,
		1,
	)
	b.add("skins", map[string]any{"joints": []int{1, 2}, "inverseBindMatrices": inverse})
	cloud := load(t, figure(t, b, 4), 0)
	corners(t, "a skin", cloud, [3]float32{0, 0, 0}, [3]float32{1, 3, 1})
	for _, p := range cloud.Positions {
		if math.Abs(float64(p[1]-3*(1-p[2]))) > 1e-4 {
			t.Fatalf("a point at %v, expected it between the lower edge at z = 1 and the upper one at y = 3", p)
		}
	}
}

func TestColors(t *testing.T) {
	b := newBuilder()
	mesh, primitive := b.square()
	b.add("nodes", map[string]any{"mesh": mesh})
	attribute(primitive, "COLOR_0", b.floats("VEC3", 4, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0))
	b.material(
		primitive,
		map[string]any{"pbrMetallicRoughness": map[string]any{"baseColorFactor": []float64{0.5, 1, 1, 1}}},
	)
	// 0.5 in linear light is 188 in sRGB.
	if cloud := load(t, figure(t, b, 4), 0); cloud.Colors[7] != [3]uint8{188, 0, 0} {
		t.Errorf("vertex colours: %v", cloud.Colors[7])
	}
}

// TestTexture samples a repeating texture on the square: its coordinates range from -1 to 3.
func TestTexture(t *testing.T) {
	red, green, blue := [3]uint8{255, 0, 0}, [3]uint8{0, 255, 0}, [3]uint8{0, 0, 255}
	tests := map[string]struct {
		sampler map[string]any
		at      map[[2]int][3]uint8 // by pixel of the texture, also beyond its edges
	}{
		"repeats by itself": {
			nil,
			map[[2]int][3]uint8{{0, 0}: red, {1, 0}: green, {0, 1}: blue, {2, 0}: red, {-1, 0}: green, {-2, 3}: blue},
		},
		"mirrored": {map[string]any{"wrapS": 33648, "wrapT": 33648},
			map[[2]int][3]uint8{
				{0, 0}:  red,
				{1, 0}:  green,
				{2, 0}:  green,
				{3, 0}:  red,
				{-1, 0}: red,
				{-2, 0}: green,
				{0, 2}:  blue,
				{0, -1}: red,
			}},
		"clamped": {
			map[string]any{"wrapS": 33071, "wrapT": 33071},
			map[[2]int][3]uint8{{-2, -2}: red, {5, -1}: green, {-1, 4}: blue},
		},
	}
	for name, test := range tests {
		b := newBuilder()
		_, primitive := b.square()
		attribute(primitive, "TEXCOORD_0", b.floats("VEC2", 4, -1, -1, 3, -1, 3, 3, -1, 3))
		b.material(
			primitive,
			map[string]any{
				"pbrMetallicRoughness": map[string]any{
					"baseColorTexture": map[string]any{"index": b.texture(test.sampler)},
				},
			},
		)
		b.add("nodes", map[string]any{"mesh": 0})
		f := figure(t, b, 4)
		for pixel, expected := range test.at {
			seen := f.parts[0].paint.texture.at(
				[2]float64{(float64(pixel[0]) + 0.5) / 2, (float64(pixel[1]) + 0.5) / 2},
			)
			if got := [3]uint8{encode(seen[0]), encode(seen[1]), encode(seen[2])}; got != expected {
				t.Errorf("%s: pixel %v is %v, expected %v", name, pixel, got, expected)
			}
		}
		// Halfway between two pixels, both have equal weight: 0.5 in linear light is 188.
		if seen := f.parts[0].paint.texture.at(
			[2]float64{0.5, 0.25},
		); encode(seen[0]) != 188 ||
			encode(seen[1]) != 188 {
			t.Errorf("%s: between two pixels it is %v", name, seen)
		}
	}
}

// TestMask checks that transparent parts of a masked texture have no points, and the other parts
// have more.
func TestMask(t *testing.T) {
	b := newBuilder()
	mesh, primitive := b.square()
	attribute(primitive, "TEXCOORD_0", b.floats("VEC2", 4, 0, 0, 1, 0, 1, 1, 0, 1))
	b.material(primitive, map[string]any{"alphaMode": "MASK", "pbrMetallicRoughness": map[string]any{
		"baseColorTexture": map[string]any{"index": b.texture(map[string]any{"wrapS": 33071, "wrapT": 33071})}}})
	b.add("nodes", map[string]any{"mesh": mesh})
	cloud := load(t, figure(t, b, 4), 0)
	for _, p := range cloud.Positions {
		if p[0] > 0.8 && p[1] > 0.8 {
			t.Errorf("a point at %v, where nothing is", p)
		}
	}
	if cloud.Len() < 499 {
		t.Errorf("%d points", cloud.Len())
	}
}

// cesiumMan returns the figure of the test data, or skips the test.
func cesiumMan(t testing.TB, points int) *Figure {
	t.Helper()
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data") // three folders below the module's root
	}
	path := filepath.Join(root, "cesium-man", "CesiumMan.glb")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", path)
	}
	f, err := Open(path, Config{Points: points, Seed: 7, FrameRate: 30})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRealFigure loads a walking man of 1.5 m in white, blue and green. His feet touch the ground
// alternately.
func TestRealFigure(t *testing.T) {
	f := cesiumMan(t, 5000)
	if f.Len() != 60 || f.Triangles() != 4672 {
		t.Errorf("%d frames of %d triangles, expected 60 of 4672", f.Len(), f.Triangles())
	}
	var boxes []volumetric.BoundingBox
	var group sync.WaitGroup
	boxes = make([]volumetric.BoundingBox, f.Len())
	for worker := range 4 {
		group.Go(func() {
			var cloud pointcloud.Cloud
			for i := 2 * worker; i < f.Len(); i += 8 {
				if err := f.Load(i, &cloud); err != nil || cloud.Len() != 5000 {
					t.Errorf("frame %d: %d points, %v", i, cloud.Len(), err)
				}
				boxes[i] = cloud.Bounds()
			}
		})
	}
	group.Wait()
	lowest, widest, narrowest := float32(1), float32(0), float32(9)
	for i, box := range boxes {
		if i%2 == 1 {
			continue
		}
		height, stride := box.Max[1]-box.Min[1], box.Max[0]-box.Min[0]
		if height < 1.4 || height > 1.6 || math.Abs(float64(box.Min[1])) > 0.05 {
			t.Errorf("frame %d: he is within %v", i, box)
		}
		lowest, widest, narrowest = min(lowest, box.Min[1]), max(widest, stride), min(narrowest, stride)
	}
	if widest-narrowest < 0.1 {
		t.Errorf("his steps are %g to %g m wide: does he walk?", narrowest, widest)
	}
	a, b := load(t, f, 0), load(t, cesiumMan(t, 5000), 0)
	if !slices.Equal(a.Positions, b.Positions) || !slices.Equal(a.Colors, b.Colors) {
		t.Error("the same seed gave another figure")
	}
	white, blue, green := 0, 0, 0
	for _, c := range a.Colors {
		switch {
		case c[0] > 200 && c[1] > 200 && c[2] > 200:
			white++
		case c[2] > c[0]+60:
			blue++
		case c[1] > c[0]+20 && c[1] > c[2]+60:
			green++
		}
	}
	if white < 2000 || blue < 500 || green < 250 {
		t.Errorf("%d points are white, %d blue, %d green", white, blue, green)
	}
}

// BenchmarkLoad loads a figure of 4,672 triangles with 19 joints as 40,000 points.
func BenchmarkLoad(b *testing.B) {
	f := cesiumMan(b, 40_000)
	var cloud pointcloud.Cloud
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := f.Load(i%f.Len(), &cloud); err != nil {
			b.Fatal(err)
		}
	}
}
