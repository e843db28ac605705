package pointcloud

import (
	"slices"
	"testing"
)

// numbered returns a random cloud whose labels and sources are the low and the high half of each
// point's number.
func numbered(seed uint64, points int) *Cloud {
	cloud := randomCloud(seed, points)
	for i := range points {
		cloud.Labels = append(cloud.Labels, uint16(i))
		cloud.Sources = append(cloud.Sources, uint16(i>>16))
	}
	return cloud
}

// numbers returns the numbers of a numbered cloud's points and checks that each point is unchanged.
func numbers(t *testing.T, whole, part *Cloud) []int {
	t.Helper()
	n := part.Len()
	if len(part.Colors) != n || len(part.Labels) != n || len(part.Sources) != n {
		t.Fatalf(
			"%d positions, %d colours, %d labels, %d sources",
			n,
			len(part.Colors),
			len(part.Labels),
			len(part.Sources),
		)
	}
	list := make([]int, n)
	for i := range list {
		list[i] = int(part.Labels[i]) | int(part.Sources[i])<<16
		if part.Positions[i] != whole.Positions[list[i]] || part.Colors[i] != whole.Colors[list[i]] {
			t.Fatalf("point %d is not what it was", list[i])
		}
	}
	return list
}

func sequence(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// apart expects that clouds are disjoint and that their union is the whole.
func apart(t *testing.T, whole *Cloud, clouds []Cloud) {
	t.Helper()
	var all []int
	for i := range clouds {
		list := numbers(t, whole, &clouds[i])
		if !slices.IsSorted(list) {
			t.Errorf("cloud %d is not in the order of the whole", i)
		}
		all = append(all, list...)
	}
	slices.Sort(all)
	if !slices.Equal(all, sequence(whole.Len())) {
		t.Errorf("%d clouds have %d points together, want each of %d once", len(clouds), len(all), whole.Len())
	}
}

func TestCloudKeepsAttributes(t *testing.T) {
	whole := numbered(1, 1000)
	var copied Cloud
	copied.CopyFrom(whole)
	copied.Swap(3, 700)
	if got := numbers(t, whole, &copied); got[3] != 700 || got[700] != 3 {
		t.Errorf("swapped points are %d and %d", got[3], got[700])
	}
	copied.Truncate(10)
	if got := numbers(t, whole, &copied); len(got) != 10 {
		t.Errorf("%d points are left of 10", len(got))
	}
	view := whole.View(20, 30)
	if got := numbers(t, whole, &view); !slices.Equal(got, sequence(30)[20:]) {
		t.Errorf("points 20 to 29 are %v", got)
	}
	view.Append([3]float32{}, [3]uint8{})
	if whole.Labels[30] != 30 {
		t.Error("appending to a view changes the cloud")
	}
	copied.AppendCloud(&view)
	if copied.Len() != 21 || len(copied.Labels) != 21 || copied.Labels[20] != 0 || copied.Labels[10] != 20 {
		t.Errorf("got labels %v", copied.Labels)
	}
}

func TestAppendCloudsOfWhichOneHasLabels(t *testing.T) {
	plain, labelled := randomCloud(1, 3), numbered(2, 2)
	labelled.Labels = []uint16{7, 8}
	for _, c := range []struct {
		first, second *Cloud
		want          []uint16
	}{
		{plain, labelled, []uint16{0, 0, 0, 7, 8}},
		{labelled, plain, []uint16{7, 8, 0, 0, 0}},
		{plain, plain, nil},
		{labelled, labelled, []uint16{7, 8, 7, 8}},
		{new(Cloud), labelled, []uint16{7, 8}},
	} {
		var got Cloud
		got.CopyFrom(c.first)
		got.AppendCloud(c.second)
		if !slices.Equal(got.Labels, c.want) || len(got.Sources) != len(c.want) ||
			got.Len() != c.first.Len()+c.second.Len() {
			t.Errorf(
				"got %d points with labels %v and %d sources, want %v",
				got.Len(),
				got.Labels,
				len(got.Sources),
				c.want,
			)
		}
	}
}

// TestSamplersKeepLabels expects that all samplers and splitters keep the labels and sources of the
// points.
func TestSamplersKeepLabels(t *testing.T) {
	whole := numbered(3, 40_000)
	plain := &Cloud{Positions: whole.Positions, Colors: whole.Colors}
	regions, _ := NewRegions(DefaultFieldOfView())
	detail, _ := NewLevelOfDetail(1, 0.01)
	importance, _ := NewImportance(DefaultImportance())
	for name, sample := range map[string]func(src, dst *Cloud){
		"stride":  func(src, dst *Cloud) { Stride(src, dst, 5000) },
		"sampler": func(src, dst *Cloud) { new(Sampler).Sample(src, dst, 5000) },
		"regions": func(src, dst *Cloud) {
			regions.Sample(src, dst, Viewpoint{[3]float32{0, 1, 2}, [3]float32{0, 0, -1}}, 5000)
		},
		"detail":     func(src, dst *Cloud) { detail.Sample(src, dst, [3]float32{0, 1, 3}) },
		"importance": func(src, dst *Cloud) { importance.Sample(src, dst, 5000) },
	} {
		var dst Cloud
		sample(whole, &dst)
		list := numbers(t, whole, &dst)
		slices.Sort(list)
		n := len(slices.Compact(list))
		if n != dst.Len() || n < 1000 || n > 10_000 {
			t.Errorf("%s: %d different points of %d, want some 5000", name, n, dst.Len())
		}
		sample(plain, &dst)
		if dst.Len() != n || len(dst.Labels)+len(dst.Sources) != 0 {
			t.Errorf(
				"%s: %d points with %d labels and %d sources of a cloud without, want %d",
				name,
				dst.Len(),
				len(dst.Labels),
				len(dst.Sources),
				n,
			)
		}
	}
}

func TestVoxelsKeepLabels(t *testing.T) {
	at := [3]float32{0.1, 0.1, 0.1}
	cloud := Cloud{
		Positions: [][3]float32{at, {0.9, 0, 0}, at, at, at, {0.9, 0, 0}}, Colors: make([][3]uint8, 6),
		Labels: []uint16{5, 1, 7, 7, 7, 1}, Sources: []uint16{1, 2, 4, 1, 8, 2},
	}
	var dst Cloud
	if err := new(VoxelGrid).Voxelize(&cloud, &dst, 0.5); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(dst.Labels, []uint16{7, 1}) || !slices.Equal(dst.Sources, []uint16{13, 2}) {
		t.Errorf("got labels %v and sources %v, want [7 1] and [13 2]", dst.Labels, dst.Sources)
	}
}

// TestWorkersDoNotMatter expects the same result with any number of workers.
func TestWorkersDoNotMatter(t *testing.T) {
	whole := numbered(4, 21_000)
	type result struct {
		name  string
		cloud Cloud
	}
	run := func(workers int) (results []result) {
		add := func(name string, sample func(dst *Cloud)) {
			r := result{name: name}
			sample(&r.cloud)
			results = append(results, r)
		}
		sampler, grid := Sampler{
			workerGroup: workerGroup{most: workers},
		}, VoxelGrid{
			workerGroup: workerGroup{most: workers},
		}
		regions, _ := NewRegions(DefaultFieldOfView())
		regions.points.workerGroup.most = workers
		detail, _ := NewLevelOfDetail(1, 0.01)
		detail.points.workerGroup.most = workers
		importance, _ := NewImportance(DefaultImportance())
		importance.points.workerGroup.most, importance.surroundings.workerGroup.most = workers, workers
		descriptions, _ := NewDescriptions(DescriptionConfig{Shares: []float64{60, 25, 15}, Random: true, Seed: 3})
		descriptions.points.workerGroup.most = workers
		add("sampler", func(dst *Cloud) { sampler.Sample(whole, dst, 5000) })
		add("voxels", func(dst *Cloud) {
			if err := grid.Voxelize(whole, dst, 0.01); err != nil {
				t.Fatal(err)
			}
		})
		add("regions", func(dst *Cloud) {
			regions.Sample(whole, dst, Viewpoint{[3]float32{0, 1, 2}, [3]float32{0, 0, -1}}, 5000)
		})
		add("detail", func(dst *Cloud) { detail.Sample(whole, dst, [3]float32{0, 1, 3}) })
		add("importance", func(dst *Cloud) { importance.Sample(whole, dst, 5000) })
		parts := make([]Cloud, 3)
		descriptions.Split(whole, parts)
		for i := range parts {
			results = append(results, result{"description", parts[i]})
		}
		return results
	}
	alone := run(1)
	for i, r := range run(5) {
		want := alone[i].cloud
		if want.Len() == 0 || !slices.Equal(r.cloud.Positions, want.Positions) ||
			!slices.Equal(r.cloud.Colors, want.Colors) ||
			!slices.Equal(r.cloud.Labels, want.Labels) ||
			!slices.Equal(r.cloud.Sources, want.Sources) {
			t.Errorf("%s: 5 workers make %d points, one alone makes others, %d", r.name, r.cloud.Len(), want.Len())
		}
	}
}

func TestSamplersReuseMemory(t *testing.T) {
	cloud := numbered(7, 12_500)
	steady(t, func(workers int) func() {
		sampler, grid := Sampler{
			workerGroup: workerGroup{most: workers},
		}, VoxelGrid{
			workerGroup: workerGroup{most: workers},
		}
		var dst Cloud
		return func() {
			sampler.Sample(cloud, &dst, 5000)
			_ = grid.Voxelize(cloud, &dst, 0.01)
			Stride(cloud, &dst, 5000)
		}
	})
}
