package pointcloud

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// everyTiling returns specifications of all tilings, some with several numbers of tiles.
func everyTiling() []TilingSpec {
	parts := []Part{{"head", []uint16{1}}, {"hands", []uint16{2, 3}}}
	specs := []TilingSpec{
		{
			By:    "cameras",
			Tiles: 1,
		}, {By: "cameras"}, {By: "cameras", Tiles: 255}, {By: "octants"}, {By: "kmeans", Tiles: 1},
		{By: "kmeans", Seed: 1},
		{By: "kmeans", Tiles: 15}, {By: "labels", Parts: parts}, {By: "labels", Parts: parts, Tiles: 3},
	}
	for _, count := range TileCounts() {
		specs = append(specs, TilingSpec{By: "direction", Tiles: count})
	}
	return specs
}

// TestEveryTilingIsAPartition expects every point in exactly one tile, the tile returned by Assign,
// in the original order, with its label and cameras.
func TestEveryTilingIsAPartition(t *testing.T) {
	for _, spec := range everyTiling() {
		name := fmt.Sprintf("%d by %s", spec.Tiles, spec.By)
		tiler, err := spec.Open(person)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		splitter := Splitter{points: partition{workerGroup: workerGroup{most: 3}}}
		tiles := make([]Cloud, tiler.Len())
		for frame, points := range []int{9000, 0, 1} {
			cloud := numbered(uint64(frame), points)
			if err := splitter.Split(tiler, cloud, tiles); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			apart(t, cloud, tiles)
			assigned := make([]uint8, points)
			tiler.Assign(cloud, 0, assigned)
			for i := range tiles {
				for _, number := range numbers(t, cloud, &tiles[i]) {
					if int(assigned[number]) != i {
						t.Fatalf("%s: point %d is in tile %d, Assign says %d", name, number, i, assigned[number])
					}
				}
			}
		}
		described := tiler.Tiles()
		if len(described) != tiler.Len() {
			t.Errorf("%s: %d tiles are described, want %d", name, len(described), tiler.Len())
		}
		labels := make(map[string]bool)
		for _, tile := range described {
			labels[tile.Label] = true
			for axis := range 3 {
				if b := tile.Box; b.Min[axis] < person.Min[axis] || b.Max[axis] > person.Max[axis] ||
					b.Max[axis] < b.Min[axis] {
					t.Errorf("%s: box of %q is %v, expected one within %v", name, tile.Label, b, person)
				}
			}
		}
		if len(labels) != len(described) || labels[""] {
			t.Errorf("%s: tiles are called %v, want different names", name, labels)
		}
	}
}

// TestTilersAreDeterministic expects the same tiles from the same first frame, unchanged by later
// frames.
func TestTilersAreDeterministic(t *testing.T) {
	first, later := numbered(1, 3000), numbered(2, 3000)
	for _, spec := range everyTiling() {
		var results [2][]uint8
		for i := range results {
			tiler, err := spec.Open(person)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(tiler.Learn(first), tiler.Learn(later), tiler.Learn(new(Cloud))); err != nil {
				t.Fatal(err)
			}
			results[i] = make([]uint8, 3000)
			tiler.Assign(first, 0, results[i])
			described := tiler.Tiles()
			if err := tiler.Learn(numbered(3, 100)); err != nil || !slices.Equal(tiler.Tiles(), described) {
				t.Errorf("%+v: a later frame changes the tiles, error %v", spec, err)
			}
		}
		if !slices.Equal(results[0], results[1]) {
			t.Errorf("%+v: the same frame gives other tiles", spec)
		}
	}
}

func TestCameraTiling(t *testing.T) {
	tiler, err := NewCameraTiling(4, person)
	if err != nil {
		t.Fatal(err)
	}
	cloud := Cloud{Positions: make([][3]float32, 6), Colors: make([][3]uint8, 6), Sources: []uint16{1, 5, 15, 0, 8, 16}}
	tiles := make([]Cloud, 15)
	var splitter Splitter
	if err := splitter.Split(tiler, &cloud, tiles); err != nil {
		t.Fatal(err)
	}
	// Unknown cameras, and cameras beyond the fourth, count as all.
	for tile, want := range map[int]int{0: 1, 4: 1, 14: 3, 7: 1, 1: 0, 13: 0} {
		if got := tiles[tile].Len(); got != want {
			t.Errorf("tile %d (%s) has %d points, want %d", tile, tiler.Tiles()[tile].Label, got, want)
		}
	}
	for tile, want := range map[int]string{0: "camera 0", 4: "cameras 0+2", 14: "cameras 0+1+2+3"} {
		if got := tiler.Tiles()[tile].Label; got != want {
			t.Errorf("tile %d is called %q, want %q", tile, got, want)
		}
	}
	cloud.Sources = nil
	if err := splitter.Split(tiler, &cloud, tiles); err != nil || tiles[14].Len() != 6 {
		t.Errorf("a later frame without cameras: %v, %d points in the tile of all", err, tiles[14].Len())
	}
	if fresh, _ := NewCameraTiling(4, person); !errors.Is(fresh.Learn(&cloud), ErrTiling) {
		t.Error("a first frame without cameras gives no error")
	}
}

func TestOctantTiling(t *testing.T) {
	tiler, err := NewOctantTiling(person)
	if err != nil {
		t.Fatal(err)
	}
	described := tiler.Tiles()
	for _, c := range []struct {
		point [3]float32
		label string
	}{
		{[3]float32{0.1, 0.9, 0.2}, "front-right-low"}, {[3]float32{-0.1, 0.9, 0.2}, "front-left-low"},
		{[3]float32{0.1, 1, 0}, "back-right-high"}, {[3]float32{-9, 99, -9}, "back-left-high"},
	} {
		if got := described[tiler.Index(c.point)].Label; got != c.label {
			t.Errorf("%v is in %q, want %q", c.point, got, c.label)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		var p [3]float32
		for axis := range p {
			p[axis] = person.Min[axis] + random.Float32()*(person.Max[axis]-person.Min[axis])
		}
		if box := described[tiler.Index(p)].Box; !inside(box, p, 1e-6) {
			t.Errorf("%v is outside the box %v of its tile", p, box)
		}
	}
}

func TestLabelTiling(t *testing.T) {
	tiler, err := NewLabelTiling([]Part{{"head", []uint16{1}}, {"hands", []uint16{7, 65535}}}, person)
	if err != nil {
		t.Fatal(err)
	}
	cloud := Cloud{
		Positions: make([][3]float32, 6),
		Colors:    make([][3]uint8, 6),
		Labels:    []uint16{0, 1, 7, 65535, 2, 1},
	}
	got := make([]uint8, 6)
	tiler.Assign(&cloud, 0, got)
	if want := []uint8{2, 0, 1, 1, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("got tiles %v, want %v", got, want)
	}
	cloud.Labels = nil
	if err := tiler.Learn(&cloud); !errors.Is(err, ErrTiling) {
		t.Errorf("a first frame without labels: got %v, want ErrTiling", err)
	}
	if tiles := tiler.Tiles(); tiles[1].Label != "hands" || tiles[2].Label != "rest" {
		t.Errorf("got tiles %v", tiles)
	}
}

func TestTilingSpecErrors(t *testing.T) {
	nan := float32(math.NaN())
	parts := func(n int) (list []Part) {
		for i := range n {
			list = append(list, Part{fmt.Sprint(i), []uint16{uint16(i)}})
		}
		return list
	}
	for _, c := range []struct {
		spec TilingSpec
		says string
	}{
		{TilingSpec{By: "mood"}, `unknown tiling "mood", expected direction, cameras, octants, kmeans, labels`},
		{TilingSpec{Tiles: 3}, "3 tiles, expected one of [1 2 4 9 15]"},
		{TilingSpec{By: "cameras", Tiles: 4}, "4 tiles by cameras, expected 1, 3, 7, 15"},
		{TilingSpec{By: "cameras", Tiles: 511}, "511 tiles by cameras"},
		{TilingSpec{By: "cameras", Tiles: -1}, "-1 tiles by cameras"},
		{TilingSpec{By: "octants", Tiles: 4}, "4 tiles by octants, expected 8"},
		{TilingSpec{By: "kmeans", Tiles: 65}, "65 clusters, expected 1 to 64"},
		{TilingSpec{By: "kmeans", Tiles: -4}, "-4 clusters"},
		{TilingSpec{By: "labels"}, "0 labelled parts, expected 1 to 255"},
		{TilingSpec{By: "labels", Parts: parts(256)}, "256 labelled parts"},
		{TilingSpec{By: "labels", Parts: parts(3), Tiles: 3},
			"3 tiles by labels, expected one for each labelled part, and one for the rest"},
		{TilingSpec{By: "labels", Parts: append(parts(3), Part{"other", []uint16{2}})},
			`label 2 belongs to "2" and to "other"`},
		{TilingSpec{By: "labels", Parts: []Part{{Name: "none"}}}, `part "none" has no labels`},
	} {
		if err := c.spec.Check(); !errors.Is(err, ErrTiling) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%+v: got %v, want ErrTiling that says %q", c.spec, err, c.says)
		}
	}
	for _, spec := range everyTiling() {
		if _, err := spec.Open(volumetric.BoundingBox{Max: [3]float32{1, nan, 1}}); !errors.Is(err, ErrTiling) {
			t.Errorf("%+v in no box: got %v, want ErrTiling", spec, err)
		}
	}
}

func TestEveryTilingReusesMemory(t *testing.T) {
	cloud := numbered(4, 9000)
	for _, spec := range []TilingSpec{{}, {By: "cameras"}, {By: "octants"}, {By: "kmeans"},
		{By: "labels", Parts: []Part{{"some", []uint16{1, 2}}}}} {
		steady(t, func(workers int) func() {
			tiler, err := spec.Open(person)
			if err != nil {
				t.Fatal(err)
			}
			splitter, tiles := Splitter{}, make([]Cloud, tiler.Len())
			splitter.points.workerGroup.most = workers
			return func() { _ = splitter.Split(tiler, cloud, tiles) }
		})
	}
}

// BenchmarkTilings splits 200,000 points.
func BenchmarkTilings(b *testing.B) {
	cloud := numbered(1, 200_000)
	for i := range cloud.Labels {
		cloud.Labels[i], cloud.Sources[i] = uint16(i%9), uint16(1+i*7%15)
	}
	specs := []TilingSpec{
		{
			By:    "direction",
			Tiles: 1,
		}, {By: "direction", Tiles: 4}, {By: "direction", Tiles: 9}, {By: "direction", Tiles: 15},
		{By: "cameras"}, {By: "octants"}, {By: "kmeans"}, {By: "kmeans", Tiles: 15},
		{By: "labels", Parts: []Part{{"a", []uint16{1, 2}}, {"b", []uint16{3, 4, 5}}, {"c", []uint16{6, 7}}}},
	}
	for _, spec := range specs {
		tiler, err := spec.Open(cloud.Bounds())
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%s/%d", spec.By, tiler.Len()), func(b *testing.B) {
			var splitter Splitter
			tiles := make([]Cloud, tiler.Len())
			measure(b, cloud.Len(), func() {
				if err := splitter.Split(tiler, cloud, tiles); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
