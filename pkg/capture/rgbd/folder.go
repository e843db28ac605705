// Package rgbd reads recordings of a depth camera: a folder of pairs of images, depth_NNN.png
// (16-bit grey) and color_NNN.png (registered to the depth image). Either all pairs or none have a
// mask_NNN.png (labels, in grey or as a palette). The camera's intrinsics.json is in the folder or
// in its parent.
//
// Packages capture and depth handle the timing of frames and the conversion to points. A Folder is
// immutable, so any number of goroutines may load from it at once.
package rgbd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// These are the errors of folders, wrapped with the file and the cause.
var (
	ErrNoFrames = errors.New("no RGB-D frames")
	ErrUnpaired = errors.New("image without partner")
)

// IntrinsicsFile is the name of the file that describes the camera.
const IntrinsicsFile = "intrinsics.json"

// Folder is a sequence of pairs of images.
type Folder struct {
	intrinsics Intrinsics
	pairs      []pair
}

// pair is the files of one frame; mask is empty if there is none.
type pair struct{ depth, color, mask string }

// OpenFolder finds the pairs and the intrinsics. LoadImage opens the images later.
func OpenFolder(dir string) (*Folder, error) {
	pairs, err := findPairs(dir)
	if err != nil {
		return nil, err
	}
	in, err := readIntrinsics(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{intrinsics: in, pairs: pairs}, nil
}

// Intrinsics returns the description of the camera.
func (f *Folder) Intrinsics() Intrinsics { return f.intrinsics }

// Len returns the number of frames.
func (f *Folder) Len() int { return len(f.pairs) }

// LoadImage replaces the image by the image of one frame. The error includes the file.
func (f *Folder) LoadImage(index int, into *depth.Image) error {
	pair := f.pairs[index]
	if err := readImage(
		pair.depth,
		func(r io.ReadSeeker) error { return readDepth(r, f.intrinsics, into) },
	); err != nil {
		return err
	}
	if err := readImage(
		pair.color,
		func(r io.ReadSeeker) error { return readColors(r, f.intrinsics, into) },
	); err != nil {
		return err
	}
	into.Labels = into.Labels[:0]
	if pair.mask == "" {
		return nil
	}
	return readImage(pair.mask, func(r io.ReadSeeker) error { return readLabels(r, f.intrinsics, into) })
}

func readImage(path string, read func(io.ReadSeeker) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := read(file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// findPairs returns the pairs in the order of the numbers. An image without partner is an error,
// because the copy is then incomplete.
func findPairs(dir string) ([]pair, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of RGB-D frames: %w", err)
	}
	var numbers []string
	depth, color, mask := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, entry := range entries {
		if number, ok := frameNumber(entry.Name(), "depth_"); ok {
			depth[number] = true
			numbers = append(numbers, number)
		} else if number, ok := frameNumber(entry.Name(), "color_"); ok {
			color[number] = true
		} else if number, ok := frameNumber(entry.Name(), "mask_"); ok {
			mask[number] = true
		}
	}
	if len(depth) == 0 && len(color) == 0 {
		return nil, fmt.Errorf(
			"%w in %s: expected depth_NNN.png and color_NNN.png among its %d entries",
			ErrNoFrames,
			dir,
			len(entries),
		)
	}
	for number := range color {
		if !depth[number] {
			return nil, fmt.Errorf(
				"%w: %s has color_%s.png, expected depth_%s.png beside it",
				ErrUnpaired,
				dir,
				number,
				number,
			)
		}
	}
	slices.SortFunc(numbers, compareNumbers)
	var pairs []pair
	for _, number := range numbers {
		if !color[number] {
			return nil, fmt.Errorf(
				"%w: %s has depth_%s.png, expected color_%s.png beside it",
				ErrUnpaired,
				dir,
				number,
				number,
			)
		}
		found := pair{
			depth: filepath.Join(dir, "depth_"+number+".png"),
			color: filepath.Join(dir, "color_"+number+".png"),
		}
		if len(mask) > 0 {
			if !mask[number] {
				return nil, fmt.Errorf(
					"%w: %s has depth_%s.png, expected mask_%s.png beside it as beside others",
					ErrUnpaired,
					dir,
					number,
					number,
				)
			}
			found.mask = filepath.Join(dir, "mask_"+number+".png")
		}
		pairs = append(pairs, found)
	}
	return pairs, nil
}

// frameNumber returns the digits of PREFIXdigits.png.
func frameNumber(name, prefix string) (string, bool) {
	number, hasPrefix := strings.CutPrefix(name, prefix)
	number, hasSuffix := strings.CutSuffix(number, ".png")
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	return number, hasPrefix && hasSuffix && number != "" && strings.TrimFunc(number, isDigit) == ""
}

// compareNumbers orders strings of digits of any length by value, then by leading zeros.
func compareNumbers(a, b string) int {
	valueA, valueB := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(valueA) != len(valueB) {
		return len(valueA) - len(valueB)
	}
	if order := strings.Compare(valueA, valueB); order != 0 {
		return order
	}
	return len(a) - len(b)
}

// readIntrinsics searches the folder, then its parent.
func readIntrinsics(dir string) (Intrinsics, error) {
	paths := []string{filepath.Join(dir, IntrinsicsFile), filepath.Join(dir, "..", IntrinsicsFile)}
	for _, path := range paths {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Intrinsics{}, err
		}
		defer file.Close()
		data, err := io.ReadAll(io.LimitReader(file, MaxIntrinsicsBytes+1))
		if err != nil {
			return Intrinsics{}, err
		}
		in, err := ParseIntrinsics(data)
		if err != nil {
			return Intrinsics{}, fmt.Errorf("%s: %w", path, err)
		}
		return in, nil
	}
	return Intrinsics{}, fmt.Errorf("%w: expected %s or %s", fs.ErrNotExist, paths[0], paths[1])
}
