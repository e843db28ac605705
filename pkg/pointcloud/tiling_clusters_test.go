package pointcloud

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestClusterTilingFindsHeaps expects that four heaps of points are found from any seed.
func TestClusterTilingFindsHeaps(t *testing.T) {
	heaps := [4][3]float32{{-0.3, 0.2, 0}, {0.3, 0.6, 0}, {0, 1.2, 0.2}, {0, 1.8, -0.2}}
	random := rand.New(rand.NewPCG(2, 2))
	var cloud Cloud
	for i := range 4000 {
		p := heaps[i%4]
		for axis := range p {
			p[axis] += 0.05 * float32(random.NormFloat64())
		}
		cloud.Append(p, [3]uint8{uint8(i % 4)})
	}
	found := 0
	for seed := range uint64(8) {
		tiler, err := NewClusterTiling(4, seed, person)
		if err != nil {
			t.Fatal(err)
		}
		tiles := make([]Cloud, 4)
		if err := new(Splitter).Split(tiler, &cloud, tiles); err != nil {
			t.Fatal(err)
		}
		pure := true
		for heap := range tiles {
			// Tiles are numbered from the bottom to the top, as are the heaps.
			pure = pure && tiles[heap].Len() == 1000
			for _, color := range tiles[heap].Colors {
				pure = pure && int(color[0]) == heap
			}
		}
		if pure {
			found++
		}
	}
	// k-means++ misses a heap sometimes; evenly chosen initial centres would miss one in most
	// cases.
	if found < 6 {
		t.Errorf("%d of 8 seeds find the four heaps, want nearly all", found)
	}
}

// TestClusterTilingLooksUpTheNearest expects that the lookup table agrees with the nearest centre
// everywhere, also outside of the box.
func TestClusterTilingLooksUpTheNearest(t *testing.T) {
	first := randomCloud(5, 3000)
	tiler, err := NewClusterTiling(15, 3, first.Bounds())
	if err != nil {
		t.Fatal(err)
	}
	if err := tiler.Learn(first); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 3))
	var cloud Cloud
	for range 20_000 {
		cloud.Append([3]float32{random.Float32() - 0.5, 2.2*random.Float32() - 0.2, random.Float32() - 0.5}, midGrey)
	}
	got := make([]uint8, cloud.Len())
	tiler.Assign(&cloud, 0, got)
	for i, p := range cloud.Positions {
		if want := tiler.Index(p); want != int(got[i]) {
			t.Fatalf("%v is assigned to %d, nearest is %d", p, got[i], want)
		}
	}
	sure := 0
	for _, tile := range tiler.lookup {
		if tile != mixedCell {
			sure++
		}
	}
	if sure < len(tiler.lookup)/2 {
		t.Errorf("%d of %d cells lie in one tile, want most", sure, len(tiler.lookup))
	}
}

func TestClusterTilingOfFewPoints(t *testing.T) {
	for _, cloud := range []*Cloud{randomCloud(1, 1), randomCloud(1, 3),
		{Positions: make([][3]float32, 50), Colors: make([][3]uint8, 50)}} {
		tiler, err := NewClusterTiling(8, 1, person)
		if err != nil {
			t.Fatal(err)
		}
		tiles := make([]Cloud, 8)
		if err := new(Splitter).Split(tiler, cloud, tiles); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for i := range tiles {
			sum += tiles[i].Len()
		}
		if sum != cloud.Len() {
			t.Errorf("%d of %d points are in tiles", sum, cloud.Len())
		}
	}
}

func TestClustersOfRealCapture(t *testing.T) {
	cloud := realCloud(t, "desk-human", "pcl_frame1.ply")
	tiler, err := NewClusterTiling(9, 0, cloud.Bounds())
	if err != nil {
		t.Fatal(err)
	}
	tiles := make([]Cloud, 9)
	if err := new(Splitter).Split(tiler, cloud, tiles); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	sum := 0
	for i := range tiles {
		sizes = append(sizes, tiles[i].Len())
		sum += tiles[i].Len()
		for _, p := range tiles[i].Positions {
			if tiler.Index(p) != i {
				t.Fatalf("%v is in tile %d, but nearest to the centre of %d", p, i, tiler.Index(p))
			}
		}
	}
	t.Logf("9 clusters: %v", sizes)
	if sum != cloud.Len() || slices.Min(sizes) == 0 || slices.Max(sizes) > cloud.Len()/2 {
		t.Errorf("tiles have %v of %d points, want some in each", sizes, cloud.Len())
	}
}
