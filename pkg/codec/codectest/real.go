package codectest

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// RealCloud returns a capture of a real person with about 68,000 points. RealCloud skips the test if the test data is
// absent.
func RealCloud(t testing.TB) *pointcloud.Cloud {
	t.Helper()
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		module, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for module != filepath.Dir(module) {
			if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
				break
			}
			module = filepath.Dir(module)
		}
		root = filepath.Join(module, "..", "shared", "data")
	}
	path := filepath.Join(root, "seated-human", "ply", "dkvfx_000.ply")
	file, err := os.Open(path)
	if err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", path)
	}
	defer func() { _ = file.Close() }()
	cloud := new(pointcloud.Cloud)
	if err := pointcloud.ReadPLY(file, cloud); err != nil {
		t.Fatal(err)
	}
	return cloud
}

// Sampled returns an evenly spread part of the cloud with its points in no particular order.
func Sampled(cloud *pointcloud.Cloud, points int) *pointcloud.Cloud {
	part := new(pointcloud.Cloud)
	new(pointcloud.Sampler).Sample(cloud, part, points)
	mixed := new(pointcloud.Cloud)
	// A step without a common factor with the number of points visits each point once.
	for i, at := 0, 0; i < part.Len(); i++ {
		mixed.Append(part.Positions[at], part.Colors[at])
		at = (at + coprime(part.Len())) % part.Len()
	}
	return mixed
}

// coprime returns a number near the golden section of n without a common factor.
func coprime(n int) int {
	step := int(float64(n)*0.618) + 1
	for gcd(step, n) != 1 {
		step++
	}
	return step
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// testReal compares a decoded capture with its source. Every decoded point must have a source
// point, of the same colour if the codec preserves colours, within the rounding error of half a
// step on each of three axes, and vice versa.
func testReal(t *testing.T, c codec.Codec) {
	source := Sampled(RealCloud(t), 20_000)
	box := source.Bounds()
	for axis := range 3 {
		box.Min[axis] -= 0.1
		box.Max[axis] += 0.1
	}
	for _, params := range []codec.Params{{PositionBits: 11, Speed: 10, Box: box},
		{PositionBits: 9, Speed: 4, Box: box}} {
		frame := mustEncode(t, c.NewEncoder(), source, params)
		decoded := mustDecode(t, c.NewDecoder(), frame)
		if decoded.Len() != source.Len() {
			t.Fatalf("%d points decoded, want %d", decoded.Len(), source.Len())
		}
		t.Logf(
			"%d bits, speed %d: %.1f bits per point",
			params.PositionBits,
			params.Speed,
			float64(8*len(frame))/float64(source.Len()),
		)
		reach := params.Step()/2*float32(math.Sqrt(3)) + rounding(box)
		exact := c.Capabilities().ExactColors
		neighbours(t, decoded, source, reach, exact)
		neighbours(t, source, decoded, reach, exact)
	}
}

// rounding returns the error that float32 adds to a distance within the box.
func rounding(box volumetric.BoundingBox) float32 {
	largest := float32(0)
	for axis := range 3 {
		largest = max(largest, -box.Min[axis], box.Max[axis], box.Max[axis]-box.Min[axis])
	}
	return 4 * largest / (1 << 23)
}

// neighbours fails the test if a point of a has no point of b within reach, or none of the same
// colour.
func neighbours(t *testing.T, a, b *pointcloud.Cloud, reach float32, colored bool) {
	t.Helper()
	index := pointcloud.NewIndex(b)
	var near []int
	for i, p := range a.Positions {
		nearest, distance := index.Nearest(p)
		if distance > reach {
			t.Fatalf("%v is %g m from the nearest point, expected at most %g", p, distance, reach)
		}
		// If points are denser than the grid, another point may be nearer than the point's own.
		found := !colored || b.Colors[nearest] == a.Colors[i]
		if !found {
			near = index.Within(p, reach, near[:0])
			for _, j := range near {
				found = found || b.Colors[j] == a.Colors[i]
			}
		}
		if !found {
			t.Fatalf("%v: no point within %g m has its colour %v", p, reach, a.Colors[i])
		}
	}
}
