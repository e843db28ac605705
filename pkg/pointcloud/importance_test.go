package pointcloud

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// room returns a floor with a checkered right half and a wall at its back: edges of colours at x >
// 0, and an edge of the shape at z = -1.
func room(points int) *Cloud {
	random := rand.New(rand.NewPCG(1, 1))
	var cloud Cloud
	for range points {
		x, y, z := 2*random.Float32()-1, random.Float32(), 2*random.Float32()-1
		color := [3]uint8{100, 100, 100}
		if random.IntN(3) == 0 {
			cloud.Append([3]float32{x, y, -1}, color)
			continue
		}
		if x > 0.1 && z > 0 && (int(x*50)+int(z*50))%2 == 0 {
			color = [3]uint8{250, 250, 250}
		}
		cloud.Append([3]float32{x, 0, z}, color)
	}
	return &cloud
}

// kept returns the share of the points inside a region that are kept.
func kept(whole, part *Cloud, inside func(i int, c *Cloud) bool) float64 {
	count := func(c *Cloud) (n float64) {
		for i := range c.Positions {
			if inside(i, c) {
				n++
			}
		}
		return n
	}
	return count(part) / count(whole)
}

func TestImportanceFindsEdges(t *testing.T) {
	cloud := room(60_000)
	config := DefaultImportance()
	config.Cell = 0.03
	importance, err := NewImportance(config)
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	importance.Sample(cloud, &dst, 6000)
	if dst.Len() != 6000 {
		t.Fatalf("%d points, want 6000", dst.Len())
	}
	flat := kept(cloud, &dst, func(i int, c *Cloud) bool {
		p := c.Positions[i]
		return p[0] < -0.1 && p[1] == 0 && p[2] > 0 && p[2] < 0.9
	})
	checked := kept(
		cloud,
		&dst,
		func(i int, c *Cloud) bool { p := c.Positions[i]; return p[0] > 0.2 && p[1] == 0 && p[2] > 0.1 },
	)
	corner := kept(cloud, &dst, func(i int, c *Cloud) bool { p := c.Positions[i]; return p[2] < -0.99 && p[1] < 0.01 })
	t.Logf("kept %.3f of the plain floor, %.3f of the checked one, %.3f of the corner", flat, checked, corner)
	// Squares of 2 cm in black and white are an edge everywhere: 1 + 3 compared with 1.
	if ratio := checked / flat; ratio < 3.5 || ratio > 4.4 {
		t.Errorf("the checked floor keeps %.2f times as much as the plain one, want about 4", ratio)
	}
	if ratio := corner / flat; ratio < 1.4 || ratio > 4.4 {
		t.Errorf("the corner keeps %.2f times as much as the plain floor, want clearly more", ratio)
	}
}

// TestImportanceOfLabels expects weights in proportion to the factors on a surface without edges.
func TestImportanceOfLabels(t *testing.T) {
	cloud := plane(50_000)
	for _, p := range cloud.Positions {
		// Only in the middle of the plane, which has no edge there.
		label := uint16(0)
		if max(p[0], -p[0], p[2], -p[2]) < 0.9 {
			label = 1 + uint16((p[0]+1)*1.5)
		}
		cloud.Labels = append(cloud.Labels, label)
	}
	importance, err := NewImportance(
		ImportanceConfig{Color: 3, Shape: 3, Cell: 0.02, Labels: map[uint16]float64{1: 4, 3: 0.5}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	importance.Sample(cloud, &dst, 12_000)
	share := func(label uint16) float64 {
		return kept(cloud, &dst, func(i int, c *Cloud) bool { return c.Labels[i] == label })
	}
	for label, want := range map[uint16]float64{1: 4, 3: 0.5} {
		// A step of weight is 1.6 % here, and label 2 shares its class with the border, so that
		// chance decides between the two: 3 %.
		if got := share(label) / share(2); math.Abs(got/want-1) > 0.05 {
			t.Errorf("label %d keeps %.3f times what label 2 does, want %v", label, got, want)
		}
	}
}

// TestImportanceIsExact expects the exact number of points, each at most once; heavy points are all
// taken before others are taken in proportion.
func TestImportanceIsExact(t *testing.T) {
	cloud := numbered(1, 9000)
	for i := range cloud.Labels {
		cloud.Sources[i], cloud.Labels[i] = cloud.Labels[i], uint16(i%10)
	}
	importance, err := NewImportance(
		ImportanceConfig{Color: 1, Shape: 1, Cell: 0.02, Labels: map[uint16]float64{7: 1000}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	for _, want := range []int{-1, 0, 1, 17, 900, 4000, 8999, 9000, 20_000} {
		importance.Sample(cloud, &dst, want)
		seen := make(map[uint16]bool)
		heavy := 0
		for i, number := range dst.Sources {
			seen[number] = true
			if dst.Labels[i] == 7 {
				heavy++
			}
			if dst.Positions[i] != cloud.Positions[number] {
				t.Fatalf("point %d is not what it was", number)
			}
		}
		if n := min(max(want, 0), 9000); dst.Len() != n || len(seen) != n || !slices.IsSorted(dst.Sources) {
			t.Errorf("%d points wanted: got %d, %d of them different, or not in order", want, dst.Len(), len(seen))
		}
		if want >= 4000 && heavy != 900 {
			t.Errorf("%d points wanted: %d of 900 heavy ones are among them", want, heavy)
		}
	}
}

func TestImportanceOfOddClouds(t *testing.T) {
	importance, err := NewImportance(DefaultImportance())
	if err != nil {
		t.Fatal(err)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, p := range map[string][3]float32{"in one place": {}, "far apart": {3e38, -3e38, 0},
		"not a number": {nan}, "nowhere": {0, inf}} {
		cloud := &Cloud{Positions: make([][3]float32, 100), Colors: make([][3]uint8, 100)}
		cloud.Positions[50] = p
		var dst Cloud
		if importance.Sample(cloud, &dst, 40); dst.Len() != 40 {
			t.Errorf("%s: %d points, want 40", name, dst.Len())
		}
	}
}

// TestImportanceFarFromTheOrigin expects the same choice as at the origin: coordinates of the earth are millions of
// metres, and the distance of two floats is then a metre.
func TestImportanceFarFromTheOrigin(t *testing.T) {
	const far = 1 << 23
	random := rand.New(rand.NewPCG(1, 1))
	var near, moved Cloud
	for range 1000 {
		p := [3]float32{float32(random.IntN(4)), float32(random.IntN(4)), float32(random.IntN(4))}
		color := [3]uint8{uint8(random.IntN(256)), uint8(random.IntN(256)), uint8(random.IntN(256))}
		near.Append(p, color)
		moved.Append([3]float32{p[0] + far, p[1] + far, p[2] + far}, color)
	}
	importance, err := NewImportance(DefaultImportance())
	if err != nil {
		t.Fatal(err)
	}
	var want, got Cloud
	importance.Sample(&near, &want, 300)
	importance.Sample(&moved, &got, 300)
	if got.Len() != 300 || !slices.Equal(got.Colors, want.Colors) {
		t.Errorf("%d points far from the origin, expected the same 300 points as at the origin", got.Len())
	}
}

func TestImportanceErrors(t *testing.T) {
	nan := math.NaN()
	for _, config := range []ImportanceConfig{
		{}, {Color: -1, Cell: 1}, {Shape: nan, Cell: 1}, {Cell: -1}, {Cell: float32(nan)}, {Cell: float32(math.Inf(1))},
		{Cell: 1, Labels: map[uint16]float64{1: 0}}, {Cell: 1, Labels: map[uint16]float64{1: nan}},
		{Cell: 1, Labels: map[uint16]float64{1: 1e9}},
	} {
		if _, err := NewImportance(config); !errors.Is(err, ErrImportance) {
			t.Errorf("%+v: got %v, want ErrImportance", config, err)
		}
	}
}

func TestImportanceReusesMemory(t *testing.T) {
	cloud := numbered(7, 12_500)
	steady(t, func(workers int) func() {
		importance, _ := NewImportance(DefaultImportance())
		importance.points.workerGroup.most, importance.surroundings.workerGroup.most = workers, workers
		var dst Cloud
		return func() { importance.Sample(cloud, &dst, 10_000) }
	})
}

// TestImportanceOfRealCapture expects that points of a real person that differ from their
// surroundings are kept more often.
func TestImportanceOfRealCapture(t *testing.T) {
	cloud := realCloud(t, "seated-human", "ply", "dkvfx_000.ply")
	importance, err := NewImportance(DefaultImportance())
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	importance.Sample(cloud, &dst, cloud.Len()/10)
	index := NewIndex(cloud)
	// Contrast is the mean difference of brightness to the neighbours within 1 cm.
	contrast := func(c *Cloud) float64 {
		values, sum := grays(cloud), 0.0
		var near []int
		for i := 0; i < c.Len(); i += 1 + c.Len()/2000 {
			own := (int(c.Colors[i][0]) + int(c.Colors[i][1]) + int(c.Colors[i][2])) / 3
			near = index.Within(c.Positions[i], 0.01, near[:0])
			difference := 0.0
			for _, j := range near {
				difference += math.Abs(float64(values[j] - own))
			}
			sum += difference / float64(len(near))
		}
		return sum / float64((c.Len()+c.Len()/2000)/(1+c.Len()/2000))
	}
	before, after := contrast(cloud), contrast(&dst)
	t.Logf("mean contrast of a point is %.1f in the capture, %.1f in a tenth of it", before, after)
	if dst.Len() != cloud.Len()/10 || after < 1.15*before {
		t.Errorf(
			"%d points with a contrast of %.1f, want %d with clearly more than %.1f",
			dst.Len(),
			after,
			cloud.Len()/10,
			before,
		)
	}
}
