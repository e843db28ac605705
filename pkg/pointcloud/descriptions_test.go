package pointcloud

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestDescriptionsAreAPartitionByShares expects disjoint descriptions whose union is the cloud,
// with the requested shares in each beginning of the cloud.
func TestDescriptionsAreAPartitionByShares(t *testing.T) {
	for _, shares := range [][]float64{{60, 25, 15}, {0.6, 0.25, 0.15}, {1}, {1, 1, 1}, {33, 33, 34}, {99.9, 0.1},
		{1, 2, 3, 4, 5, 6, 7, 8}} {
		for _, random := range []bool{false, true} {
			d, err := NewDescriptions(DescriptionConfig{Shares: shares, Random: random, Seed: 5})
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, s := range shares {
				sum += s
			}
			parts := make([]Cloud, d.Len())
			for _, points := range []int{0, 1, 2, 100, 3999, 4000, 4001, 41_234} {
				cloud := numbered(2, points)
				d.Split(cloud, parts)
				apart(t, cloud, parts)
				for i := range parts {
					want := shares[i] / sum * float64(points)
					if off := math.Abs(float64(parts[i].Len()) - want); off > 1+float64(points)/4000 {
						t.Errorf(
							"%v, random %v: description %d has %d of %d points, want %.1f",
							shares,
							random,
							i,
							parts[i].Len(),
							points,
							want,
						)
					}
				}
			}
		}
	}
}

// Whole per cents of a multiple of 4,000 points are exact.
func TestDescriptionsAreExact(t *testing.T) {
	for _, random := range []bool{false, true} {
		d, err := NewDescriptions(DescriptionConfig{Shares: []float64{60, 25, 15}, Random: random})
		if err != nil {
			t.Fatal(err)
		}
		parts := make([]Cloud, 3)
		d.Split(randomCloud(1, 40_000), parts)
		for i, want := range []int{24_000, 10_000, 6000} {
			if got := parts[i].Len(); got != want {
				t.Errorf("random %v: description %d has %d points, want %d", random, i, got, want)
			}
		}
	}
}

// TestSubsetsOfDescriptionsMerge appends any subset of descriptions in any order and expects their
// union.
func TestSubsetsOfDescriptionsMerge(t *testing.T) {
	cloud := numbered(3, 10_000)
	d, err := NewDescriptions(DescriptionConfig{Shares: []float64{60, 25, 15}, Random: true})
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]Cloud, 3)
	d.Split(cloud, parts)
	for set := range 1 << 3 {
		var merged Cloud
		want := 0
		for i := range slices.Backward(parts) {
			if set>>i&1 == 1 {
				merged.AppendCloud(&parts[i])
				want += parts[i].Len()
			}
		}
		list := numbers(t, cloud, &merged)
		slices.Sort(list)
		if n := len(slices.Compact(list)); n != want {
			t.Errorf("descriptions %03b merge into %d points, want %d", set, n, want)
		}
	}
}

// TestOrderOfDescriptions expects the shares in every range of interleaved descriptions. Random
// descriptions differ between seeds and repeat with the same seed.
func TestOrderOfDescriptions(t *testing.T) {
	cloud := numbered(4, 20_000)
	split := func(random bool, seed uint64) []Cloud {
		d, err := NewDescriptions(DescriptionConfig{Shares: []float64{60, 25, 15}, Random: random, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		parts := make([]Cloud, 3)
		d.Split(cloud, parts)
		return parts
	}
	even := split(false, 0)
	for i, share := range []float64{0.60, 0.25, 0.15} {
		var counts [200]int
		for _, number := range numbers(t, cloud, &even[i]) {
			counts[number/100]++
		}
		for middleOf, n := range counts {
			if math.Abs(float64(n)-100*share) > 2 {
				t.Errorf("description %d has %d of the points from %d on, want %v", i, n, 100*middleOf, 100*share)
			}
		}
	}
	drawn := numbers(t, cloud, &split(true, 1)[0])
	if again := numbers(t, cloud, &split(true, 1)[0]); !slices.Equal(drawn, again) {
		t.Error("the same seed draws others")
	}
	if other := numbers(t, cloud, &split(true, 2)[0]); slices.Equal(drawn, other) {
		t.Error("another seed draws the same")
	}
	// Neighbours in the order that are both in the first description: 36 % if random, with a
	// standard deviation of 68.
	both := 0
	for i := range drawn[1:] {
		if drawn[i+1] == drawn[i]+1 {
			both++
		}
	}
	if math.Abs(float64(both)-0.36*20_000) > 5*68 {
		t.Errorf("%d pairs of neighbours are in the first description, want about %d", both, 36*200)
	}
}

func TestDescriptionErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, shares := range [][]float64{nil, make([]float64, 65), {0}, {1, -1}, {1, nan}, {inf}, {1e308, 1e308},
		{1, 1e-9}} {
		if _, err := NewDescriptions(DescriptionConfig{Shares: shares}); !errors.Is(err, ErrDescriptions) {
			t.Errorf("%v: got %v, want ErrDescriptions", shares, err)
		}
	}
}

func TestDescriptionsReuseMemory(t *testing.T) {
	cloud := numbered(4, 12_500)
	for _, random := range []bool{false, true} {
		steady(t, func(workers int) func() {
			d, _ := NewDescriptions(DescriptionConfig{Shares: []float64{60, 25, 15}, Random: random})
			d.points.workerGroup.most = workers
			parts := make([]Cloud, 3)
			return func() { d.Split(cloud, parts) }
		})
	}
}

// TestDescriptionsOfRealCapture expects that each description of a scan, ordered by rows and
// columns, covers the whole person.
func TestDescriptionsOfRealCapture(t *testing.T) {
	cloud, some := realCloud(t, "seated-human", "ply", "dkvfx_000.ply"), Cloud{}
	for _, random := range []bool{false, true} {
		d, err := NewDescriptions(DescriptionConfig{Shares: []float64{60, 25, 15}, Random: random})
		if err != nil {
			t.Fatal(err)
		}
		parts := make([]Cloud, 3)
		d.Split(cloud, parts)
		all := new(Cloud)
		for i := range parts {
			all.AppendCloud(&parts[i])
			// Points far from any point of the description are parts of the person that it omits.
			own := NewIndex(&parts[i])
			far := 0
			Stride(cloud, &some, 5000)
			for _, p := range some.Positions {
				if _, distance := own.Nearest(p); distance > 0.02 {
					far++
				}
			}
			if far > some.Len()/100 {
				t.Errorf("random %v: %d of %d points are 2 cm away from description %d", random, far, some.Len(), i)
			}
		}
		if !mapsEqual(points(all), points(cloud)) {
			t.Errorf("random %v: the descriptions are not the capture", random)
		}
	}
}

func BenchmarkDescriptions(b *testing.B) {
	cloud := randomCloud(1, 200_000)
	for _, random := range []bool{false, true} {
		b.Run(fmt.Sprintf("random=%v", random), func(b *testing.B) {
			d, err := NewDescriptions(DescriptionConfig{Shares: []float64{60, 25, 15}, Random: random})
			if err != nil {
				b.Fatal(err)
			}
			parts := make([]Cloud, 3)
			measure(b, cloud.Len(), func() { d.Split(cloud, parts) })
		})
	}
}
