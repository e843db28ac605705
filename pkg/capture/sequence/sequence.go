// Package sequence lists files of frames, one frame per file, in the natural order of their names: frame_2.ply precedes
// frame_10.ply.
package sequence

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoFiles reports that a folder contains no file with the extension.
var ErrNoFiles = errors.New("no files of frames")

// Files returns the paths of a folder's files with an extension such as ".ply", in any letter case. Subfolders and
// hidden files are ignored.
func Files(dir, extension string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of frames: %w", err)
	}
	var names []string
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() && !strings.HasPrefix(name, ".") && strings.EqualFold(filepath.Ext(name), extension) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w in %s: expected files named *%s among its %d entries", ErrNoFiles, dir, extension,
			len(entries))
	}
	slices.SortFunc(names, compareNatural)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names, nil
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
