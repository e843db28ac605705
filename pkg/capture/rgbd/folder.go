// Package rgbd plays recordings of a depth camera: a folder of pairs of images, depth_NNN.png (16-bit grey) and color_NNN.png (registered
// to the depth image), and the camera's intrinsics.json in the folder or in its parent. Each pair becomes one point cloud.
//
// Clouds are in the coordinates of the camera: the origin is its centre of projection, x goes right and y up in the picture, z towards the
// camera from what it sees, so that everything seen has z < 0. Nothing is centred on the person: the origin then stays where it is from
// frame to frame, from recording to recording, and from recording to live camera.
//
// When a frame is due is the business of package capture. A Folder never changes after it was opened, so any number of goroutines may load
// from it at once.
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
	"sync"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Errors of folders. They are wrapped with the file and what was wrong.
var (
	ErrNoFrames = errors.New("no RGB-D frames")
	ErrUnpaired = errors.New("image without partner")
	ErrConfig   = errors.New("invalid RGB-D configuration")
)

// IntrinsicsFile is the name of the file that describes the camera.
const IntrinsicsFile = "intrinsics.json"

// Folder is a sequence of pairs of images.
type Folder struct {
	intrinsics Intrinsics
	projection projection
	filter     filter
	pairs      []pair
	workspaces sync.Pool // of *workspace, one per load under way
}

type pair struct{ depth, color string }

// OpenFolder finds the pairs and the intrinsics. It opens no image: Load does.
func OpenFolder(dir string, cfg Config) (*Folder, error) {
	pairs, err := findPairs(dir)
	if err != nil {
		return nil, err
	}
	in, err := readIntrinsics(dir)
	if err != nil {
		return nil, err
	}
	filter, err := newFilter(in, cfg)
	if err != nil {
		return nil, err
	}
	folder := &Folder{intrinsics: in, projection: newProjection(in), filter: filter, pairs: pairs}
	folder.workspaces.New = func() any { return newWorkspace(in) }
	return folder, nil
}

// Intrinsics is the camera's description, as read.
func (f *Folder) Intrinsics() Intrinsics { return f.intrinsics }

// Len is the number of frames.
func (f *Folder) Len() int { return len(f.pairs) }

// Load replaces the cloud's points by those of one frame, in the order of the image's rows. Its error names the file.
func (f *Folder) Load(index int, into *pointcloud.Cloud) error {
	into.Reset()
	pair := f.pairs[index]
	w := f.workspaces.Get().(*workspace)
	defer f.workspaces.Put(w)
	if err := readImage(pair.depth, func(r io.ReadSeeker) error { return w.readDepth(r, f.intrinsics) }); err != nil {
		return err
	}
	if err := readImage(pair.color, func(r io.ReadSeeker) error { return w.readColor(r, f.intrinsics) }); err != nil {
		return err
	}
	f.filter.apply(w)
	f.projection.project(w, into)
	return nil
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

// findPairs lists the pairs in the order of their numbers. An image without partner is an error: it would come from a broken copy.
func findPairs(dir string) ([]pair, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of RGB-D frames: %w", err)
	}
	var numbers []string
	depth, color := map[string]bool{}, map[string]bool{}
	for _, entry := range entries {
		if number, ok := frameNumber(entry.Name(), "depth_"); ok {
			depth[number] = true
			numbers = append(numbers, number)
		} else if number, ok := frameNumber(entry.Name(), "color_"); ok {
			color[number] = true
		}
	}
	if len(depth) == 0 && len(color) == 0 {
		return nil, fmt.Errorf("%w in %s: expected depth_NNN.png and color_NNN.png among its %d entries", ErrNoFrames, dir, len(entries))
	}
	for number := range color {
		if !depth[number] {
			return nil, fmt.Errorf("%w: %s has color_%s.png, expected depth_%s.png beside it", ErrUnpaired, dir, number, number)
		}
	}
	slices.SortFunc(numbers, compareNumbers)
	var pairs []pair
	for _, number := range numbers {
		if !color[number] {
			return nil, fmt.Errorf("%w: %s has depth_%s.png, expected color_%s.png beside it", ErrUnpaired, dir, number, number)
		}
		pairs = append(pairs, pair{
			depth: filepath.Join(dir, "depth_"+number+".png"),
			color: filepath.Join(dir, "color_"+number+".png"),
		})
	}
	return pairs, nil
}

// frameNumber cuts the digits out of PREFIXdigits.png.
func frameNumber(name, prefix string) (string, bool) {
	number, hasPrefix := strings.CutPrefix(name, prefix)
	number, hasSuffix := strings.CutSuffix(number, ".png")
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	return number, hasPrefix && hasSuffix && number != "" && strings.TrimFunc(number, isDigit) == ""
}

// compareNumbers orders runs of digits of any length by value, then by leading zeros.
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

// readIntrinsics looks in the folder, then in its parent.
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
