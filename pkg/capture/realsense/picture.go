package realsense

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// picture is the image pair of one camera at one instant: depth in the view of the colour camera.
type picture struct {
	image  depth.Image
	stamp  float64 // milliseconds of the domain's clock
	domain rs2.Domain
	number uint64 // of the depth image
}

// copyDepth copies the rows of a depth image.
func (p *picture) copyDepth(from rs2.Picture, width, height int) error {
	if err := check(from, width, height, 2); err != nil {
		return err
	}
	p.image.Depth = resize(p.image.Depth, width*height)
	copyRows(bytesOf(p.image.Depth), from, 2*width)
	return nil
}

// copyColor copies the rows of a colour image for any order of channels.
func (p *picture) copyColor(from rs2.Picture, format rs2.Format, width, height int) error {
	channels := 3
	if format == rs2.RGBA8 || format == rs2.BGRA8 {
		channels = 4
	}
	if err := check(from, width, height, channels); err != nil {
		return err
	}
	p.image.Colors = resize(p.image.Colors, width*height)
	if format == rs2.RGB8 {
		copyRows(bytesOf(p.image.Colors), from, 3*width)
		return nil
	}
	red, blue := 0, 2
	if format == rs2.BGR8 || format == rs2.BGRA8 {
		red, blue = 2, 0
	}
	for y := range height {
		row, to := from.Pixels[y*from.Stride:], p.image.Colors[y*width:][:width]
		for x := range to {
			pixel := row[x*channels:][:3]
			to[x] = [3]uint8{pixel[red], pixel[1], pixel[blue]}
		}
	}
	return nil
}

// check compares the library's description of an image's memory with the format agreed at the start
// of the stream.
func check(p rs2.Picture, width, height, pixel int) error {
	if p.Width != width || p.Height != height || p.Stride < width*pixel || len(p.Pixels) < p.Stride*height {
		return fmt.Errorf("%w: image of %dx%d in %d bytes with rows of %d, expected %dx%d of %d bytes each",
			ErrStreams, p.Width, p.Height, len(p.Pixels), p.Stride, width, height, pixel)
	}
	return nil
}

func copyRows(to []byte, from rs2.Picture, row int) {
	if from.Stride == row {
		copy(to, from.Pixels)
		return
	}
	for y := range from.Height {
		copy(to[y*row:][:row], from.Pixels[y*from.Stride:])
	}
}

func resize[T any](values []T, n int) []T { return slices.Grow(values[:0], n)[:n] }

// bytesOf returns the memory of pixels. The library supports little-endian processors only, and its
// depths are little-endian.
func bytesOf[T uint16 | [3]uint8](pixels []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(pixels))), len(pixels)*int(unsafe.Sizeof(pixels[0])))
}
