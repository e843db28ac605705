package pointcloud

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/test/allocations"
)

func TestStride(t *testing.T) {
	src := randomCloud(1, 1000)
	for _, want := range []int{-1, 0, 1, 3, 250, 333, 999, 1000, 5000} {
		var dst Cloud
		Stride(src, &dst, want)
		if dst.Len() != min(max(want, 0), 1000) || len(dst.Colors) != dst.Len() {
			t.Fatalf("%d points wanted: got %d", want, dst.Len())
		}
		// Gaps between chosen points equal the step, rounded up or down.
		last := -1
		for i, p := range dst.Positions {
			at := slices.Index(src.Positions, p)
			if src.Colors[at] != dst.Colors[i] {
				t.Fatalf("point %d has another point's colour", at)
			}
			if gap := at - last; i > 0 && (gap < 1000/want || gap > 1000/want+1) {
				t.Fatalf("%d points wanted: gap of %d", want, gap)
			}
			last = at
		}
	}
}

func TestSampleChoosesExistingPointsOnce(t *testing.T) {
	src := randomCloud(1, 10_000)
	whole := points(src)
	var sampler Sampler
	var dst Cloud
	for _, want := range []int{-1, 0, 1, 2500, 7777, 9999, 10_000, 200_000} {
		sampler.Sample(src, &dst, want)
		if dst.Len() != min(max(want, 0), src.Len()) {
			t.Fatalf("%d points wanted: got %d", want, dst.Len())
		}
		for p, n := range points(&dst) {
			if whole[p] < n {
				t.Fatalf("%d points wanted: %v is chosen %d times, the source has %d", want, p, n, whole[p])
			}
		}
	}
}

// TestSampleIgnoresOrder expects that the choice depends on positions and not on the order of
// points.
func TestSampleIgnoresOrder(t *testing.T) {
	src := randomCloud(1, 10_000)
	shuffled := &Cloud{Positions: slices.Clone(src.Positions), Colors: slices.Clone(src.Colors)}
	rand.New(rand.NewPCG(1, 2)).Shuffle(src.Len(), func(i, j int) {
		shuffled.Positions[i], shuffled.Positions[j] = shuffled.Positions[j], shuffled.Positions[i]
		shuffled.Colors[i], shuffled.Colors[j] = shuffled.Colors[j], shuffled.Colors[i]
	})
	var sampler Sampler
	var a, b Cloud
	sampler.Sample(src, &a, 2500)
	sampler.Sample(shuffled, &b, 2500)
	same, set := 0, points(&b)
	for p := range points(&a) {
		same += min(set[p], 1)
	}
	// Points in the same cell of the curve, of which there are few here, may replace each other.
	if same < 2450 {
		t.Errorf("%d of 2500 chosen points are the same after shuffling", same)
	}
}

// TestSampleIsSpreadEvenly expects that every cap of a sphere contains its share of the points.
func TestSampleIsSpreadEvenly(t *testing.T) {
	src := realOrderSphere(100_000)
	for name, sample := range map[string]func(dst *Cloud){
		"sampler": func(dst *Cloud) { new(Sampler).Sample(src, dst, 10_000) },
		"stride":  func(dst *Cloud) { Stride(src, dst, 10_000) },
	} {
		var dst Cloud
		sample(&dst)
		for axis := range 3 {
			for _, side := range []float32{-1, 1} {
				count := 0
				for _, p := range dst.Positions {
					if p[axis]*side > 0.8 {
						count++
					}
				}
				// Archimedes: a cap of a fifth of the radius is a tenth of the surface. A random
				// choice would deviate by ±30 (one sigma).
				if count < 930 || count > 1070 {
					t.Errorf(
						"%s: %d of 10000 points beyond %v on axis %d, want about 1000",
						name,
						count,
						0.8*side,
						axis,
					)
				}
			}
		}
	}
}

// realOrderSphere returns points in turns around a sphere from pole to pole, in the order of a
// scanner.
func realOrderSphere(n int) *Cloud {
	var cloud Cloud
	for i := range n {
		y := 1 - 2*(float64(i)+0.5)/float64(n)
		radius, angle := math.Sqrt(1-y*y), float64(i)*math.Pi*(3-math.Sqrt(5))
		cloud.Append(
			[3]float32{float32(radius * math.Cos(angle)), float32(y), float32(radius * math.Sin(angle))},
			midGrey,
		)
	}
	return &cloud
}

func TestSampleCoincidingPoints(t *testing.T) {
	src := &Cloud{Positions: make([][3]float32, 100), Colors: make([][3]uint8, 100)}
	var dst Cloud
	new(Sampler).Sample(src, &dst, 40)
	if dst.Len() != 40 {
		t.Errorf("got %d points, want 40", dst.Len())
	}
}

func TestPortion(t *testing.T) {
	cloud := randomCloud(1, 1000)
	for ratio, want := range map[float64]int{0: 0, -1: 0, 0.25: 250, 0.0001: 1, 0.3336: 334, 1: 1000, 7: 1000} {
		if got := cloud.Portion(ratio); got != want {
			t.Errorf("%v of 1000 points: got %d, want %d", ratio, got, want)
		}
	}
	if got := cloud.Portion(math.NaN()); got != 0 {
		t.Errorf("not a number: got %d, want 0", got)
	}
}

func TestVoxelize(t *testing.T) {
	src := &Cloud{
		Positions: [][3]float32{{0.1, 0.1, 0.1}, {-0.1, 0.1, 0.1}, {0.3, 0.3, 0.3}, {0.9, 0.9, 0.9}, {0.2, 0.2, 0.2}},
		Colors:    [][3]uint8{{10, 0, 255}, {1, 2, 3}, {20, 1, 255}, {4, 5, 6}, {30, 0, 255}},
	}
	var grid VoxelGrid
	var dst Cloud
	if err := grid.Voxelize(src, &dst, 0.5); err != nil {
		t.Fatal(err)
	}
	wantPositions := [][3]float32{{0.2, 0.2, 0.2}, {-0.1, 0.1, 0.1}, {0.9, 0.9, 0.9}}
	wantColors := [][3]uint8{{20, 0, 255}, {1, 2, 3}, {4, 5, 6}}
	if dst.Len() != 3 || !slices.Equal(dst.Colors, wantColors) {
		t.Fatalf("got %v, want %v %v", dst, wantPositions, wantColors)
	}
	for i, p := range dst.Positions {
		if squareDistance(p, wantPositions[i]) > 1e-12 {
			t.Errorf("voxel %d is at %v, want %v", i, p, wantPositions[i])
		}
	}
}

// TestVoxelizeAgainstDefinition compares the grid with the plain definition, for clouds of changing
// size in the memory of one grid.
func TestVoxelizeAgainstDefinition(t *testing.T) {
	var grid VoxelGrid
	var dst Cloud
	for seed, edge := range []float32{0.01, 0.1, 0.003, 3, 0.05} {
		src := randomCloud(uint64(seed), 1000+5000*seed)
		if err := grid.Voxelize(src, &dst, edge); err != nil {
			t.Fatal(err)
		}
		cells := map[[3]int]int{}
		for _, p := range src.Positions {
			cells[cellOf(p, edge)]++
		}
		if dst.Len() != len(cells) {
			t.Errorf("edge %v: %d voxels, want %d", edge, dst.Len(), len(cells))
		}
		for _, p := range dst.Positions {
			if cells[cellOf(p, edge)] == 0 {
				t.Fatalf("edge %v: %v is in an empty cell or one used before", edge, p)
			}
		}
		if count, err := grid.Count(src, edge); err != nil || count != len(cells) {
			t.Errorf("edge %v: counted %d, %v, want %d", edge, count, err, len(cells))
		}
	}
	src := randomCloud(9, 5000)
	if n := allocations.PerCall(10, func() { _ = grid.Voxelize(src, &dst, 0.01) }); n != 0 {
		t.Errorf("%v allocations with used memory, want 0", n)
	}
}

func cellOf(p [3]float32, edge float32) (cell [3]int) {
	for axis, v := range p {
		cell[axis] = int(math.Floor(float64(v) * (1 / float64(edge))))
	}
	return cell
}

func TestVoxelizeErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	one := func(x float32) *Cloud { return &Cloud{Positions: [][3]float32{{0, x, 0}}, Colors: [][3]uint8{{}}} }
	cases := []struct {
		cloud *Cloud
		edge  float32
	}{{one(0), 0}, {one(0), -1}, {one(0), nan}, {one(0), inf}, {one(nan), 1}, {one(inf), 1}, {one(-inf), 1},
		{one(1100), 0.001}, {one(-1100), 0.001}}
	for _, c := range cases {
		dst := *randomCloud(1, 5)
		if err := new(VoxelGrid).Voxelize(c.cloud, &dst, c.edge); !errors.Is(err, ErrVoxel) || dst.Len() != 0 {
			t.Errorf(
				"%v, edge %v: got %v and %d points, want ErrVoxel and none",
				c.cloud.Positions,
				c.edge,
				err,
				dst.Len(),
			)
		}
	}
}

func TestEdgeFor(t *testing.T) {
	src := realOrderSphere(60_000)
	var grid VoxelGrid
	for _, want := range []int{10, 1000, 10_000, 40_000} {
		edge, err := grid.EdgeFor(src, want)
		if err != nil {
			t.Fatal(err)
		}
		// The number of voxels of a surface is proportional to the square of the edge, with jumps
		// at some edges.
		if got, _ := grid.Count(src, edge); got > want || got < want*8/10 {
			t.Errorf("%d voxels wanted: edge %v gives %d", want, edge, got)
		}
	}
	if _, err := grid.EdgeFor(src, 0); !errors.Is(err, ErrVoxel) {
		t.Errorf("no voxels wanted: got %v, want ErrVoxel", err)
	}
	if _, err := grid.EdgeFor(new(Cloud), 1); !errors.Is(err, ErrVoxel) {
		t.Errorf("no points: got %v, want ErrVoxel", err)
	}
	if edge, err := grid.EdgeFor(src, 100_000); err != nil || edge > 0.001 {
		t.Errorf("more voxels wanted than points: got %v, %v, want a small edge", edge, err)
	}
	if edge, err := grid.EdgeFor(
		&Cloud{Positions: [][3]float32{{5, 5, 5}}, Colors: [][3]uint8{{}}},
		3,
	); err != nil ||
		!(edge > 0) {
		t.Errorf("one point: got %v, %v, want any edge", edge, err)
	}
}

// BenchmarkSample reduces 200,000 points to about half of them.
func BenchmarkSample(b *testing.B) {
	src := randomCloud(1, 200_000)
	var dst Cloud
	var sampler Sampler
	var grid VoxelGrid
	edge, err := grid.EdgeFor(src, 100_000)
	if err != nil {
		b.Fatal(err)
	}
	regions, _ := NewRegions(DefaultFieldOfView())
	detail, _ := NewLevelOfDetail(1.4, 0.01)
	importance, _ := NewImportance(DefaultImportance())
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"stride", func() { Stride(src, &dst, 100_000) }},
		{"sampler", func() { sampler.Sample(src, &dst, 100_000) }},
		{"voxels", func() { _ = grid.Voxelize(src, &dst, edge) }},
		{"voxels-few", func() { _ = grid.Voxelize(src, &dst, 4*edge) }},
		{"importance", func() { importance.Sample(src, &dst, 100_000) }},
		{"detail", func() { detail.Sample(src, &dst, ahead.Position) }},
		{"field-of-view", func() { regions.Sample(src, &dst, ahead, 100_000) }},
	} {
		b.Run(c.name, func(b *testing.B) { measure(b, src.Len(), c.run) })
	}
}
