package recording

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Extension is the extension of segments.
const Extension = ".volroom"

// SegmentName returns the file name of a segment, counted from 1.
func SegmentName(n int) string { return fmt.Sprintf("%06d%s", n, Extension) }

// SegmentNumber returns the number of a segment by its file name, false for other files.
func SegmentNumber(name string) (int, bool) {
	digits, ok := strings.CutSuffix(name, Extension)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0
}

// maxFolder is the maximum length of a folder's name, below the 255 bytes of common file systems.
const maxFolder = 120

// RoomFolder returns the name of the folder for the recordings of a room. All bytes except letters, digits, - and _ are
// written as %XX, so that the name is one element of a path. Of longer names the end is replaced by a hash.
func RoomFolder(room string) string {
	name := volumetric.FileName(room)
	if len(name) <= maxFolder {
		return name
	}
	sum := sha256.Sum256([]byte(room))
	end := "~" + hex.EncodeToString(sum[:8])
	return name[:maxFolder-len(end)] + end
}

// Folder returns the name of the folder of a recording that began at a time. Names sort by time.
func Folder(begun time.Time) string { return begun.UTC().Format("20060102T150405.000Z") }

// Segments returns the paths of the segments of a recording, in order. The path is that of a segment, of the folder of
// a recording, or of the folder of a room with one recording. Errors wrap ErrNone or are those of the file system.
func Segments(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var numbers []int
	var folders []string
	for _, e := range entries {
		if n, ok := SegmentNumber(e.Name()); ok && e.Type().IsRegular() {
			numbers = append(numbers, n)
		}
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	switch {
	case len(numbers) > 0:
	case len(folders) == 1:
		return Segments(filepath.Join(path, folders[0]))
	case len(folders) > 1:
		return nil, fmt.Errorf("%w: %s has no segment but the folders %s: choose one", ErrNone, path,
			strings.Join(folders, ", "))
	default:
		return nil, fmt.Errorf("%w: %s has no file *%s", ErrNone, path, Extension)
	}
	slices.Sort(numbers)
	paths := make([]string, len(numbers))
	for i, n := range numbers {
		paths[i] = filepath.Join(path, SegmentName(n))
	}
	return paths, nil
}
