package ply

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/sequence"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

const asciiPLY = `ply
format ascii 1.0
element vertex 2
property float x
property float y
property float z
property uchar red
property uchar green
property uchar blue
end_header
0 1 2 10 20 30
3 4 5 40 50 60
`

const binaryPLY = "ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float x\nproperty float y\n" +
	"property float z\nend_header\n" +
	"\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40" // 1, 2, 3

func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolderLoadsInOrder(t *testing.T) {
	dir := folderOf(t, map[string]string{
		"f10.ply": asciiPLY, "f9.PLY": binaryPLY, "f11.ply.bak": "no", "notes.txt": "no", ".hidden.ply": "no",
	})
	if err := os.Mkdir(filepath.Join(dir, "f1.ply"), 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if folder.Len() != 2 {
		t.Fatalf("%d frames, expected 2", folder.Len())
	}
	var cloud pointcloud.Cloud
	for range 2 { // the second time into a used frame
		if err := folder.Load(0, &cloud); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(cloud.Positions, [][3]float32{{1, 2, 3}}) || len(cloud.Colors) != 1 {
			t.Errorf("f9.PLY: %v", cloud)
		}
		if err := folder.Load(1, &cloud); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(cloud.Positions, [][3]float32{{0, 1, 2}, {3, 4, 5}}) ||
			!slices.Equal(cloud.Colors, [][3]uint8{{10, 20, 30}, {40, 50, 60}}) {
			t.Errorf("f10.ply: %v", cloud)
		}
	}
}

func TestFolderErrors(t *testing.T) {
	empty := folderOf(t, map[string]string{"readme.txt": ""})
	if _, err := OpenFolder(empty); !errors.Is(err, sequence.ErrNoFiles) || !strings.Contains(err.Error(), empty) {
		t.Errorf("folder without PLY files: %v", err)
	}
	if _, err := OpenFolder(
		filepath.Join(empty, "missing"),
	); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "missing") {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := OpenFolder(
		filepath.Join(empty, "readme.txt"),
	); err == nil ||
		!strings.Contains(err.Error(), "readme.txt") {
		t.Errorf("file for a folder: %v", err)
	}
	dir := folderOf(t, map[string]string{"a.ply": asciiPLY[:len(asciiPLY)-20], "b.ply": "plys\n", "c.ply": asciiPLY})
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var cloud pointcloud.Cloud
	for index, name := range []string{"a.ply", "b.ply"} {
		if err := folder.Load(
			index,
			&cloud,
		); !errors.Is(err, pointcloud.ErrMalformed) || !strings.Contains(err.Error(), name) ||
			cloud.Len() != 0 {
			t.Errorf("%s: %d points, error %v", name, cloud.Len(), err)
		}
	}
	if err := folder.Load(2, &cloud); err != nil || cloud.Len() != 2 {
		t.Errorf("c.ply after broken ones: %d points, error %v", cloud.Len(), err)
	}
	if err := os.Remove(filepath.Join(dir, "c.ply")); err != nil {
		t.Fatal(err)
	}
	if err := folder.Load(
		2,
		&cloud,
	); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "c.ply") ||
		cloud.Len() != 0 {
		t.Errorf("removed file: %d points, error %v", cloud.Len(), err)
	}
}

func TestFolderLoadsInParallel(t *testing.T) {
	folder, err := OpenFolder(folderOf(t, map[string]string{"1.ply": asciiPLY, "2.ply": binaryPLY}))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			var cloud pointcloud.Cloud
			for range 20 {
				if err := folder.Load(worker%2, &cloud); err != nil || cloud.Len() != 2-worker%2 {
					t.Errorf("%d points, error %v", cloud.Len(), err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkLoad(b *testing.B) {
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(root, "seated-human", "ply")
	if _, err := os.Stat(dir); err != nil {
		b.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", dir)
	}
	folder, err := OpenFolder(dir)
	if err != nil {
		b.Fatal(err)
	}
	var cloud pointcloud.Cloud
	b.ReportAllocs()
	for b.Loop() {
		if err := folder.Load(0, &cloud); err != nil {
			b.Fatal(err)
		}
	}
}
