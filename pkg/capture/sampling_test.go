package capture

import (
	"math"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// row is a scan line: point i is at x = i and has a colour derived from i.
func row(points int) pointcloud.Cloud {
	var cloud pointcloud.Cloud
	for i := range points {
		cloud.Append([3]float32{float32(i)}, [3]uint8{uint8(i), uint8(i >> 8), uint8(i >> 16)})
	}
	return cloud
}

func TestScatterSamplesEvenly(t *testing.T) {
	const points = 10_000
	for _, limit := range []int{0, 1, 7, 2500, 9999, 10_000, 20_000} {
		cloud := row(points)
		scatter(&cloud, limit, 1, 2)
		expected := points
		if limit > 0 {
			expected = min(limit, points)
		}
		if cloud.Len() != expected || len(cloud.Colors) != expected {
			t.Fatalf("limit %d: %d points and %d colours", limit, cloud.Len(), len(cloud.Colors))
		}
		var at []int
		for i, p := range cloud.Positions {
			c := cloud.Colors[i]
			if int(p[0]) != int(c[0])|int(c[1])<<8|int(c[2])<<16 {
				t.Fatalf("limit %d: point %v has the colour of another, %v", limit, p, c)
			}
			at = append(at, int(p[0]))
		}
		slices.Sort(at)
		if len(slices.Compact(slices.Clone(at))) != expected {
			t.Errorf("limit %d: points were taken twice", limit)
		}
		for i, place := range at {
			if first, end := i*points/expected, (i+1)*points/expected; place < first || place >= end {
				t.Fatalf("limit %d: sample %d is point %d, expected one of %d to %d", limit, i, place, first, end-1)
			}
		}
	}
}

func TestScatterHidesTheScan(t *testing.T) {
	const points, parts = 40_000, 10
	cloud := row(points)
	scatter(&cloud, 0, 1, 2)
	samples := map[string]func(i int) int{
		"prefix":      func(i int) int { return i },
		"second half": func(i int) int { return points/2 + i },
		"stride 10":   func(i int) int { return 10 * i },
	}
	for name, pick := range samples {
		var counts [parts]int
		const size = points / 10
		for i := range size {
			counts[int(cloud.Positions[pick(i)][0])*parts/points]++
		}
		// Each part has 400 of 4,000 points, with a standard deviation of at most 19: a difference
		// of 6 of them never occurs.
		for part, count := range counts {
			if math.Abs(float64(count)-size/parts) > 6*math.Sqrt(size/parts*0.9) {
				t.Errorf("%s: part %d of the scan has %d points, expected about %d", name, part, count, size/parts)
			}
		}
	}
}

func TestScatterIsDeterministic(t *testing.T) {
	order := func(seed, frame int) [][3]float32 {
		cloud := row(1000)
		scatter(&cloud, 500, seed, frame)
		return cloud.Positions
	}
	if !slices.Equal(order(1, 2), order(1, 2)) {
		t.Error("the same seed and frame gave two orders")
	}
	if slices.Equal(order(1, 2), order(1, 3)) || slices.Equal(order(1, 2), order(2, 2)) {
		t.Error("another frame or seed gave the same order")
	}
}
