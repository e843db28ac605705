package depth

import (
	"bufio"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
)

// LearnImages is how many images a static background is learnt from, one second's: enough for every pixel that sees something at all to have seen it.
const LearnImages = 30

// What stands in front of the background by less than this is taken for it: 2 cm for what moves a little, and a hundredth of the depth for the
// camera's noise, which is a few thousandths of it for cameras by time of flight and stereo alike.
const (
	sceneMargin = 0.02 // metres
	sceneNoise  = 0.01
)

// scene is the nearest that a camera has seen while there was no object. Images are cleaned of flying pixels before, which would hover in front of every edge.
type scene struct {
	images int
	depth  []uint16 // 0 where nothing was seen
}

func newScene(c Camera) *scene { return &scene{depth: make([]uint16, c.Width*c.Height)} }

// add takes an image, and tells whether that was the last one.
func (s *scene) add(depth []uint16) bool {
	for i, d := range depth {
		if d != 0 && (s.depth[i] == 0 || d < s.depth[i]) {
			s.depth[i] = d
		}
	}
	s.images++
	return s.images == LearnImages
}

// removeScene makes background of what is not in front of the scene.
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

// readScene reads what a camera sees without the object from a PNG, or from NAME.png where the path is a folder.
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
		return nil, fmt.Errorf("%w: %s: expected %d × %d pixels as camera %q has, got %d × %d", ErrBackground, path, c.Width, c.Height, c.Name, header.Width, header.Height)
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
