package allocate

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// testData returns the path of a file of the test data, or skips the test.
func testData(t testing.TB, elements ...string) string {
	t.Helper()
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data") // two folders above the root of the module
	}
	path := filepath.Join(append([]string{root}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", path)
	}
	return path
}

// epoch is the time of every trace's first row.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// readViewports returns the traces of all viewers, at 30 rows per second.
//
// Unity's axes are left-handed (z away from the viewer, who looks along +z), and its angles rotate about z, then x,
// then y, in degrees. The conversion mirrors z, which reverses rotations about x and y. The traces have no angle of
// view.
func readViewports(t testing.TB, fov, aspect float64) [][]Viewpoint {
	t.Helper()
	file, err := os.Open(testData(t, "viewports", "loot.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // read only
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var traces [][]Viewpoint
	viewer := ""
	for _, row := range rows[1:] {
		var n [7]float64
		for i := range n {
			if n[i], err = strconv.ParseFloat(row[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		if row[7] != viewer {
			viewer = row[7]
			traces = append(traces, nil)
		}
		trace := &traces[len(traces)-1]
		turn := func(axis int, degrees float64) rotation {
			var v vector
			v[axis] = degrees * math.Pi / 180
			return rotationBy(v)
		}
		*trace = append(*trace, Viewpoint{
			At:          epoch.Add(time.Duration(len(*trace)) * time.Second / 30),
			Position:    [3]float64{n[1], n[2], -n[3]},
			Orientation: turn(1, -n[5]).after(turn(0, -n[4])).after(turn(2, n[6])),
			FOV:         fov, Aspect: aspect,
		})
	}
	return traces
}

// figure is a person at the origin in the given number of tiles, with levels of a quarter, half and all of its points.
func figure(t testing.TB, count int, tight bool) Object {
	t.Helper()
	person, err := synthetic.New(synthetic.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var cloud pointcloud.Cloud
	person.At(0, &cloud)
	tiling, err := pointcloud.NewTiling(count, synthetic.Box())
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]pointcloud.Cloud, count)
	tiling.Split(&cloud, parts)
	object := Object{Mode: volumetric.ModeAlternatives}
	for i, b := range tiling.Boxes() {
		if tight {
			b = parts[i].Bounds()
		}
		full := volumetric.Bitrate(parts[i].Len()) * bitsPerPoint
		object.Tiles = append(object.Tiles, Tile{
			Box:    b,
			Levels: []Level{{Rate: full / 4, Detail: 0.25}, {Rate: full / 2, Detail: 0.5}, {Rate: full, Detail: 1}},
		})
	}
	return object
}

func fullRate(object *Object) (rate volumetric.Bitrate) {
	for _, tile := range object.Tiles {
		rate += tile.Levels[len(tile.Levels)-1].Rate
	}
	return rate
}

// watch allocates a quarter of the full rate of the object five times per second for the viewpoint predicted 100 ms
// before, and sums the visible quality for the real viewpoints. It also counts the quality changes of tiles.
func watch(t testing.TB, change func(*Config), object Object, traces [][]Viewpoint) (sum float64, changes int) {
	t.Helper()
	a := newAllocator(t, change)
	for _, trace := range traces {
		scene := Scene{Budget: fullRate(&object) / 4, Objects: []Object{object}}
		scene.Objects[0].Tiles = slices.Clone(object.Tiles)
		var p Predictor
		for i := 3; i < len(trace); i++ {
			p.Observe(trace[i-3])
			if i%6 != 0 {
				continue
			}
			v, _ := p.Predict(trace[i].At)
			scene.Viewpoint = &v
			result := a.Allocate(&scene)
			sum += VisibleQuality(trace[i], &scene, result.Tiles)
			changes += keep(&scene, result)
		}
	}
	return sum, changes
}

// The viewers stand 0.2 to 2.2 m from the figure and mostly look at its upper half.
func TestVisibleQualityOfRealViewers(t *testing.T) {
	race.SkipSequential(t)
	for _, c := range []struct {
		fov   float64
		tiles int
		tight bool
		least float64
	}{
		{90, 9, false, 1.6}, {90, 9, true, 1.5}, {90, 15, false, 1.9}, {90, 15, true, 1.8}, {60, 9, false, 1.6},
	} {
		t.Run(fmt.Sprintf("%d tiles, %g degrees, tight %v", c.tiles, c.fov, c.tight), func(t *testing.T) {
			traces := readViewports(t, c.fov*math.Pi/180, 1)
			if len(traces) != 40 {
				t.Fatalf("%d traces, expected 40", len(traces))
			}
			object := figure(t, c.tiles, c.tight)
			uniform, _ := watch(t, func(c *Config) { c.Strategy = StrategyUniform }, object, traces)
			ours, changes := watch(t, nil, object, traces)
			free, without := watch(t, func(c *Config) { c.SwitchCost, c.Reserve = 0, 0 }, object, traces)
			// A trace takes ten seconds.
			perTile := 1 / float64(10*len(traces)*c.tiles)
			t.Logf("visible quality is %.2f times that of uniform with %.2f changes per tile and second, "+
				"%.2f times with %.2f without hysteresis",
				ours/uniform, float64(changes)*perTile, free/uniform, float64(without)*perTile)
			if ours < c.least*uniform || ours < 0.95*free {
				t.Errorf("visible quality is %.2f times that of uniform, %.2f times without hysteresis, "+
					"expected %.2f or more",
					ours/uniform, free/uniform, c.least)
			}
		})
	}
}
