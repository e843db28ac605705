package pointcloud

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// plane returns points on a square with an edge of 2 m at height 0, in an order independent of
// positions.
func plane(points int) *Cloud {
	var cloud Cloud
	for i := range points {
		// The additive sequence of Roberts, which fills a square evenly.
		x, z := math.Mod(0.7548776662466927*float64(i), 1), math.Mod(0.5698402909980532*float64(i), 1)
		cloud.Append([3]float32{float32(2*x - 1), 0, float32(2*z - 1)}, midGrey)
	}
	return &cloud
}

// TestLevelOfDetailKeepsShares expects the share of the inverse square at every distance.
func TestLevelOfDetailKeepsShares(t *testing.T) {
	const points = 40_000
	cloud := plane(points)
	detail, err := NewLevelOfDetail(2, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	for _, c := range []struct{ height, share float64 }{{1, 1}, {100, 0.05}, {8, 0.05 * 5 / 4}, {4, 0.25}} {
		got := detail.Sample(cloud, &dst, [3]float32{0, float32(c.height), 0})
		want := 0.0
		for _, p := range cloud.Positions {
			distance := math.Sqrt(float64(p[0]*p[0]+p[2]*p[2]) + c.height*c.height)
			want += detail.Share(float32(distance))
		}
		if got != dst.Len() || math.Abs(float64(got)-want) > 0.005*want+2 {
			t.Errorf("from %v m: %d points, want %.0f", c.height, got, want)
		}
		if share := want / points; c.height > 2 && math.Abs(share/c.share-1) > 0.2 {
			t.Errorf("from %v m: a share of %.3f is asked for, want about %.3f", c.height, share, c.share)
		}
	}
	// Seen from the edge, each quarter of the plane has its own share.
	detail.Sample(cloud, &dst, [3]float32{-2.5, 0.5, 0})
	for quarter := range 4 {
		inside := func(p [3]float32) bool { return int((p[0]+1)*2) == quarter }
		want, got := 0.0, 0
		for _, p := range cloud.Positions {
			if inside(p) {
				want += detail.Share(float32(math.Sqrt(float64(squareDistance(p, [3]float32{-2.5, 0.5, 0})))))
			}
		}
		for _, p := range dst.Positions {
			if inside(p) {
				got++
			}
		}
		if math.Abs(float64(got)-want) > 2*math.Sqrt(want) {
			t.Errorf("quarter %d keeps %d points, want %.0f", quarter, got, want)
		}
	}
}

// TestLevelsOfDetailAreNested expects that a viewer who steps back loses points and gains none.
func TestLevelsOfDetailAreNested(t *testing.T) {
	cloud := numbered(1, 20_000)
	detail, err := NewLevelOfDetail(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var dst Cloud
	before := sequence(cloud.Len())
	for _, distance := range []float32{0.1, 2, 3, 5, 20, 1000} {
		detail.Sample(cloud, &dst, [3]float32{0, 0.9, distance})
		now := numbers(t, cloud, &dst)
		for _, number := range now {
			if _, there := slices.BinarySearch(before, number); !there {
				t.Fatalf("point %d is kept from %v m, but not from nearer", number, distance)
			}
		}
		before = now
	}
	if len(before) > 1 {
		t.Errorf("%d points are left from 1 km, want at most the first", len(before))
	}
}

func TestLevelOfDetailErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range [][2]float32{{0, 0}, {-1, 0}, {nan, 0}, {inf, 0}, {1, -0.1}, {1, 1.1}, {1, nan}} {
		if _, err := NewLevelOfDetail(c[0], c[1]); !errors.Is(err, ErrDetail) {
			t.Errorf("%v: got %v, want ErrDetail", c, err)
		}
	}
	if all, err := NewLevelOfDetail(1, 1); err != nil || all.Share(1000) < 0.999999 {
		t.Errorf("everything at any distance: error %v", err)
	}
}

func TestLevelOfDetailReusesMemory(t *testing.T) {
	cloud := numbered(7, 12_500)
	steady(t, func(workers int) func() {
		detail, _ := NewLevelOfDetail(1, 0.01)
		detail.points.workerGroup.most = workers
		var dst Cloud
		return func() { detail.Sample(cloud, &dst, [3]float32{0, 1, 3}) }
	})
}

// TestLevelOfDetailOfRealCapture expects that the wall behind a person is reduced more than the
// person.
func TestLevelOfDetailOfRealCapture(t *testing.T) {
	cloud := realCloud(t, "desk-human", "pcl_frame1.ply")
	detail, err := NewLevelOfDetail(1, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	box := cloud.Bounds()
	eye := [3]float32{(box.Min[0] + box.Max[0]) / 2, (box.Min[1] + box.Max[1]) / 2, box.Max[2] + 0.5}
	var dst Cloud
	detail.Sample(cloud, &dst, eye)
	want := 0.0
	for _, p := range cloud.Positions {
		want += detail.Share(float32(math.Sqrt(float64(squareDistance(p, eye)))))
	}
	t.Logf("%d of %d points are kept, shares add up to %.0f", dst.Len(), cloud.Len(), want)
	if math.Abs(float64(dst.Len())-want) > 4*math.Sqrt(want) || want > 0.9*float64(cloud.Len()) {
		t.Errorf("%d points are kept, want %.0f, less than %d", dst.Len(), want, cloud.Len())
	}
}
