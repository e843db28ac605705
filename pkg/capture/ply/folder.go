// Package ply reads folders of PLY files, one point cloud per file, in the natural order of their names. The package
// only reads files; package capture determines when a frame is due. A Folder is immutable; any number of goroutines may
// load from it concurrently.
package ply

import (
	"fmt"
	"os"

	"github.com/volsfu/volsfu/pkg/capture/sequence"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Folder is a sequence of PLY files, ASCII or binary.
type Folder struct {
	files []string
}

// OpenFolder lists the files of a folder whose names end in .ply, in any letter case. Subfolders
// and hidden files are ignored.
func OpenFolder(dir string) (*Folder, error) {
	files, err := sequence.Files(dir, ".ply")
	if err != nil {
		return nil, err
	}
	return &Folder{files}, nil
}

// Len returns the number of frames.
func (f *Folder) Len() int { return len(f.files) }

// Load replaces the cloud's points by the points of one frame, in the order of the file. The error names the file.
func (f *Folder) Load(index int, into *pointcloud.Cloud) error {
	into.Reset()
	file, err := os.Open(f.files[index])
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pointcloud.ReadPLY(file, into); err != nil {
		return fmt.Errorf("%s: %w", f.files[index], err)
	}
	return nil
}
