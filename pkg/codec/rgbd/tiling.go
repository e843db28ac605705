package rgbd

import (
	"fmt"
	"image"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
)

// tilings contains the rectangles across and down by the number of tiles. People are taller than wide.
var tilings = map[int][2]int{1: {1, 1}, 2: {1, 2}, 4: {2, 2}, 9: {3, 3}}

// alignment is the alignment of rectangles in pixels: an MCU of JPEG at the full raster, and a multiple of every
// reduction.
const alignment = squareBlocks * blockEdge

// CheckTiles returns an error that wraps codec.ErrParams unless an image can be cut into the number of tiles.
func CheckTiles(tiles int) error {
	if _, ok := tilings[tiles]; !ok {
		return fmt.Errorf("%w: %d rectangles per camera, expected 1, 2, 4 or 9", codec.ErrParams, tiles)
	}
	return nil
}

// Rectangles cuts an image into tiles: the box of its pixels with a depth evenly, with the outer rectangles up to the
// border of the image, so that the rectangles are usable for later images, too. Rectangles of a small box may be empty.
func Rectangles(camera *depth.Camera, from *depth.Image, tiles int) ([]image.Rectangle, error) {
	if err := CheckTiles(tiles); err != nil {
		return nil, err
	}
	box := image.Rect(0, 0, camera.Width, camera.Height)
	if len(from.Depth) > 0 {
		all := part{depths: from.Depth, stride: camera.Width, rect: box}
		if tight := all.tight(); !tight.rect.Empty() {
			box = tight.rect
		}
	}
	across, down := tilings[tiles][0], tilings[tiles][1]
	rects := make([]image.Rectangle, tiles)
	for i := range rects {
		x, y := i%across, i/across
		rects[i] = image.Rectangle{
			Min: image.Pt(border(box.Min.X, box.Max.X, x, across, camera.Width),
				border(box.Min.Y, box.Max.Y, y, down, camera.Height)),
			Max: image.Pt(border(box.Min.X, box.Max.X, x+1, across, camera.Width),
				border(box.Min.Y, box.Max.Y, y+1, down, camera.Height)),
		}
	}
	return rects, nil
}

// border returns the border with an index of n intervals between low and high.
func border(low, high, index, n, size int) int {
	switch index {
	case 0:
		return 0
	case n:
		return size
	}
	return (low + (high-low)*index/n) / alignment * alignment
}
