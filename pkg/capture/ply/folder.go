// Package ply reads folders of PLY files, one point cloud per file, in the natural order of their names: frame_2.ply
// precedes frame_10.ply. The package only reads files; package capture determines when a frame is due. A Folder is
// immutable; any number of goroutines may load from it concurrently.
package ply

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ErrNoFiles reports that a folder contains no PLY file.
var ErrNoFiles = errors.New("no PLY files")

// Folder is a sequence of PLY files, ASCII or binary.
type Folder struct {
	files []string
}

// OpenFolder lists the files of a folder whose names end in .ply, in any letter case. Subfolders
// and hidden files are ignored.
func OpenFolder(dir string) (*Folder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of PLY files: %w", err)
	}
	var names []string
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() && !strings.HasPrefix(name, ".") && strings.EqualFold(filepath.Ext(name), ".ply") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf(
			"%w in %s: expected files named *.ply among its %d entries",
			ErrNoFiles,
			dir,
			len(entries),
		)
	}
	slices.SortFunc(names, compareNatural)
	folder := &Folder{}
	for _, name := range names {
		folder.files = append(folder.files, filepath.Join(dir, name))
	}
	return folder, nil
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

// compareNatural compares names by their text, and runs of digits by their value.
func compareNatural(a, b string) int {
	restA, restB := a, b
	for restA != "" && restB != "" {
		digitsA, digitsB := leadingDigits(restA), leadingDigits(restB)
		if digitsA == "" || digitsB == "" {
			if order := cmp.Compare(restA[0], restB[0]); order != 0 {
				return order
			}
			restA, restB = restA[1:], restB[1:]
			continue
		}
		valueA, valueB := strings.TrimLeft(digitsA, "0"), strings.TrimLeft(digitsB, "0")
		if order := cmp.Or(cmp.Compare(len(valueA), len(valueB)), cmp.Compare(valueA, valueB)); order != 0 {
			return order
		}
		restA, restB = restA[len(digitsA):], restB[len(digitsB):]
	}
	// The names are equal except for the remainder or for leading zeros.
	return cmp.Or(cmp.Compare(len(restA), len(restB)), cmp.Compare(a, b))
}

func leadingDigits(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		return s
	}
	return s[:end]
}
