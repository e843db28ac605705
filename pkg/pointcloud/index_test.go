package pointcloud

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNearestAgainstAllPoints(t *testing.T) {
	coinciding := &Cloud{Positions: make([][3]float32, 500), Colors: make([][3]uint8, 500)}
	flat := &Cloud{}
	for i := range 1000 {
		flat.Append([3]float32{float32(i % 32), 1, float32(i / 32)}, midGrey)
	}
	for name, cloud := range map[string]*Cloud{
		"one": randomCloud(1, 1), "two": randomCloud(1, 2), "some": randomCloud(1, 17), "many": randomCloud(1, 3000),
		"coinciding": coinciding, "flat": flat,
	} {
		index := NewIndex(cloud)
		random := rand.New(rand.NewPCG(7, 7))
		for range 300 {
			query := [3]float32{random.Float32()*4 - 2, random.Float32()*4 - 1, random.Float32()*4 - 2}
			want := float32(math.Inf(1))
			for _, p := range cloud.Positions {
				want = min(want, squareDistance(p, query))
			}
			i, distance := index.Nearest(query)
			if got := squareDistance(cloud.Positions[i], query); got != want {
				t.Fatalf(
					"%s: nearest to %v is %v away, found one %v away",
					name,
					query,
					math.Sqrt(float64(want)),
					math.Sqrt(float64(got)),
				)
			}
			if math.Abs(float64(distance)-math.Sqrt(float64(want))) > 1e-6 {
				t.Fatalf("%s: distance is %v, want %v", name, distance, math.Sqrt(float64(want)))
			}
			radius := random.Float32()
			var expected []int
			for i, p := range cloud.Positions {
				if squareDistance(p, query) <= radius*radius {
					expected = append(expected, i)
				}
			}
			found := index.Within(query, radius, nil)
			slices.Sort(found)
			if !slices.Equal(found, expected) {
				t.Fatalf("%s: %d points within %v of %v, want %d", name, len(found), radius, query, len(expected))
			}
		}
	}
}

func TestNearestInEmptyCloud(t *testing.T) {
	index := NewIndex(new(Cloud))
	if i, distance := index.Nearest([3]float32{}); i != -1 || !math.IsInf(float64(distance), 1) {
		t.Errorf("got %d, %v, want -1 and +Inf", i, distance)
	}
	if found := index.Within([3]float32{}, 1, nil); len(found) != 0 {
		t.Errorf("found %v in nothing", found)
	}
}

func BenchmarkIndex(b *testing.B) {
	cloud := randomCloud(1, 70_000)
	b.Run("build", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NewIndex(cloud)
		}
	})
	b.Run("nearest", func(b *testing.B) {
		index := NewIndex(cloud)
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			p := cloud.Positions[i%cloud.Len()]
			index.Nearest([3]float32{p[0] + 0.001, p[1], p[2]})
			i++
		}
	})
}
