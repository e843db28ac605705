package depth

import (
	"bufio"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
)

// LearnImages is the number of images from which a static background is learnt: one second, enough
// for every pixel that sees a surface at all.
const LearnImages = 30

// A surface in front of the background by less than this margin counts as background: 2 cm for
// small movements, and a hundredth of the depth for the camera's noise, which is a few thousandths
// of the depth for time-of-flight and stereo cameras.
const (
	sceneMargin = 0.02 // metres
	sceneNoise  = 0.01
)

// scene contains the nearest depth per pixel seen without the object. Images are cleaned of flying
// pixels before, because flying pixels appear in front of every edge.
type scene struct {
	images int
	depth  []uint16 // 0 if no depth was seen
}

func newScene(c Camera) *scene { return &scene{depth: make([]uint16, c.Width*c.Height)} }

// add adds an image and reports whether it was the last.
func (s *scene) add(depth []uint16) bool {
	for i, d := range depth {
		if d != 0 && (s.depth[i] == 0 || d < s.depth[i]) {
			s.depth[i] = d
		}
	}
	s.images++
	return s.images == LearnImages
}

// removeScene marks depths that are not in front of the scene as background.
func (o *optics) removeScene(depth []uint16) {
	for i, d := range depth {
		if d == 0 {
			continue
		}
		front := float64(d)*(1-sceneNoise) - sceneMargin/o.camera.Unit
		if front < float64(o.object[i].lo) {
			o.object[i] = nothing
		} else {
			o.object[i].hi = min(o.object[i].hi, uint16(front))
		}
	}
}

// readScene reads the depth image without the object from a PNG, or from NAME.png if the path is a
// folder.
func readScene(path string, c *Camera) ([]uint16, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, c.Name+".png")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBackground, err)
	}
	defer file.Close()
	header, err := png.DecodeConfig(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBackground, path, err)
	}
	if header.Width != c.Width || header.Height != c.Height {
		return nil, fmt.Errorf(
			"%w: %s: expected %d × %d pixels as camera %q has, got %d × %d",
			ErrBackground,
			path,
			c.Width,
			c.Height,
			c.Name,
			header.Width,
			header.Height,
		)
	}
	if _, err := file.Seek(0, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBackground, err)
	}
	picture, err := png.Decode(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBackground, path, err)
	}
	gray, ok := picture.(*image.Gray16)
	if !ok {
		return nil, fmt.Errorf("%w: %s: expected depths as 16-bit grey", ErrBackground, path)
	}
	depth := make([]uint16, c.Width*c.Height)
	for i := range depth {
		at := i/c.Width*gray.Stride + i%c.Width*2
		depth[i] = uint16(gray.Pix[at])<<8 | uint16(gray.Pix[at+1])
	}
	return depth, nil
}
