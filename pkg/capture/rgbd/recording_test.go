package rgbd

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// recordingPath is the path of a file of the recording in the test data, whether it exists or not.
func recordingPath(elements ...string) string {
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data") // three folders below the module's root
	}
	return filepath.Join(append([]string{root, "seated-human"}, elements...)...)
}

// recording opens the recording in the test data, or skips the test.
func recording(t testing.TB, cfg Config) *Folder {
	t.Helper()
	dir := recordingPath("rgbd")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", dir)
	}
	folder, err := OpenFolder(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestRecordingMatchesItsClouds compares with the clouds that the recording's makers computed from the same frames: as they have no
// filter, every point of ours must be among theirs.
func TestRecordingMatchesItsClouds(t *testing.T) {
	folder := recording(t, DefaultConfig())
	if folder.Len() != 48 {
		t.Errorf("%d frames, expected 48", folder.Len())
	}
	for index := range 3 {
		path := recordingPath("ply", fmt.Sprintf("dkvfx_%03d.ply", index))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", path)
		}
		var reference, cloud pointcloud.Cloud
		if err := pointcloud.ReadPLY(bytes.NewReader(data), &reference); err != nil {
			t.Fatal(err)
		}
		if err := folder.Load(index, &cloud); err != nil {
			t.Fatal(err)
		}
		theirs := map[[3]int32][3]uint8{}
		place := func(p [3]float32) [3]int32 { // in steps of 0.1 mm, one unit of depth
			return [3]int32{int32(math.Round(float64(p[0]) * 1e4)), int32(math.Round(float64(p[1]) * 1e4)), int32(math.Round(float64(p[2]) * 1e4))}
		}
		for i, p := range reference.Positions {
			theirs[place(p)] = reference.Colors[i]
		}
		found := 0
		for i, p := range cloud.Positions {
			home, here := place(p), false
			for step := range 27 {
				color, ok := theirs[[3]int32{home[0] + int32(step%3) - 1, home[1] + int32(step/3%3) - 1, home[2] + int32(step/9) - 1}]
				here = here || ok && color == cloud.Colors[i]
			}
			if here {
				found++
			}
		}
		if share := float64(found) / float64(cloud.Len()); share < 0.999 || cloud.Len() < 60_000 {
			t.Errorf("frame %d: %d points, %.2f %% of them in the reference's %d", index, cloud.Len(), 100*share, reference.Len())
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	folder := recording(b, DefaultConfig())
	var cloud pointcloud.Cloud
	b.ReportAllocs()
	for b.Loop() {
		if err := folder.Load(0, &cloud); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFilter(b *testing.B) {
	folder := recording(b, DefaultConfig())
	w := newWorkspace(folder.intrinsics)
	file, err := os.Open(folder.pairs[0].depth)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	if err := w.readDepth(file, folder.intrinsics); err != nil {
		b.Fatal(err)
	}
	depth := slices.Clone(w.depth)
	b.ReportAllocs()
	for b.Loop() {
		copy(w.depth, depth)
		folder.filter.apply(w)
	}
}
