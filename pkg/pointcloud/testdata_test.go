package pointcloud

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testData returns the path of a file of the test data, or skips the test.
func testData(t testing.TB, elements ...string) string {
	t.Helper()
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		// Tests run in the package's folder, two levels below the module's root.
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(append([]string{root}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", path)
	}
	return path
}

// realCloud reads a capture of the test data.
func realCloud(t testing.TB, elements ...string) *Cloud {
	t.Helper()
	data, err := os.ReadFile(testData(t, elements...))
	if err != nil {
		t.Fatal(err)
	}
	var cloud Cloud
	if err := ReadPLY(bytes.NewReader(data), &cloud); err != nil {
		t.Fatal(err)
	}
	return &cloud
}

// randomCloud returns points on an upright ellipsoid of human size with random colours.
func randomCloud(seed uint64, points int) *Cloud {
	random := rand.New(rand.NewPCG(seed, 1))
	var cloud Cloud
	for range points {
		v := [3]float64{random.NormFloat64(), random.NormFloat64(), random.NormFloat64()}
		length := math.Hypot(math.Hypot(v[0], v[1]), v[2])
		cloud.Append(
			[3]float32{float32(0.3 * v[0] / length), float32(0.9 + 0.9*v[1]/length), float32(0.2 * v[2] / length)},
			[3]uint8{uint8(random.IntN(256)), uint8(random.IntN(256)), uint8(random.IntN(256))},
		)
	}
	return &cloud
}

// points returns the cloud as a multiset, for comparisons independent of the order.
func points(c *Cloud) map[[6]float32]int {
	set := map[[6]float32]int{}
	for i, p := range c.Positions {
		color := c.Colors[i]
		set[[6]float32{p[0], p[1], p[2], float32(color[0]), float32(color[1]), float32(color[2])}]++
	}
	return set
}

// measure runs a benchmark after its memory has grown. It reports the time per point, and the time
// of the fastest run, which other load on the machine changes least.
func measure(b *testing.B, points int, do func()) {
	do()
	best := time.Duration(math.MaxInt64)
	b.ReportAllocs()
	for b.Loop() {
		begin := time.Now()
		do()
		best = min(best, time.Since(begin))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
	b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
}
