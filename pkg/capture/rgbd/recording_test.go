package rgbd

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// recordingPath returns the path of a file of the recording in the test data, even if it is
// missing.
func recordingPath(elements ...string) string {
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data") // three folders below the module's root
	}
	return filepath.Join(append([]string{root, "seated-human"}, elements...)...)
}

// recording opens the recording in the test data, or skips the test.
func recording(t testing.TB) *Folder {
	t.Helper()
	dir := recordingPath("rgbd")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", dir)
	}
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestRecordingMatchesItsClouds compares with the clouds that the recording's makers computed from
// the same frames: they do not use a filter, so every point must be among theirs.
func TestRecordingMatchesItsClouds(t *testing.T) {
	folder := recording(t)
	if folder.Len() != 48 {
		t.Errorf("%d frames, expected 48", folder.Len())
	}
	camera, err := folder.Intrinsics().Camera("seated")
	if err != nil {
		t.Fatal(err)
	}
	options := depth.DefaultOptions()
	options.Background.Near, options.Background.Far = folder.Intrinsics().Near, folder.Intrinsics().Far
	projector, err := depth.NewProjector(camera, options)
	if err != nil {
		t.Fatal(err)
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
		var m depth.Image
		if err := folder.LoadImage(index, &m); err != nil {
			t.Fatal(err)
		}
		if err := projector.Project(&m, &cloud); err != nil {
			t.Fatal(err)
		}
		theirs := map[[3]int32][3]uint8{}
		place := func(p [3]float32) [3]int32 { // in steps of 0.1 mm, one unit of depth
			return [3]int32{
				int32(math.Round(float64(p[0]) * 1e4)),
				int32(math.Round(float64(p[1]) * 1e4)),
				int32(math.Round(float64(p[2]) * 1e4)),
			}
		}
		for i, p := range reference.Positions {
			theirs[place(p)] = reference.Colors[i]
		}
		found := 0
		for i, p := range cloud.Positions {
			home, here := place(p), false
			for step := range 27 {
				color, ok := theirs[[3]int32{home[0] + int32(step%3) - 1, home[1] + int32(step/3%3) - 1,
					home[2] + int32(step/9) - 1}]
				here = here || ok && color == cloud.Colors[i]
			}
			if here {
				found++
			}
		}
		if share := float64(found) / float64(cloud.Len()); share < 0.999 || cloud.Len() < 60_000 {
			t.Errorf(
				"frame %d: %d points, %.2f %% of them in the reference's %d",
				index,
				cloud.Len(),
				100*share,
				reference.Len(),
			)
		}
	}
}

func BenchmarkLoadImage(b *testing.B) {
	folder := recording(b)
	var m depth.Image
	b.ReportAllocs()
	for b.Loop() {
		if err := folder.LoadImage(0, &m); err != nil {
			b.Fatal(err)
		}
	}
}
