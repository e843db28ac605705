package visual

import (
	"bufio"
	"fmt"
	"image"
	"io"
	"math"
)

// Y4M writes pictures as an uncompressed film (YUV4MPEG2, 4:2:0, BT.709, 16 to 235), which all video programs read.
// Flush returns errors.
type Y4M struct {
	to            *bufio.Writer
	width, height int
	luma          Plane
	chroma        [2][]uint8
}

// NewY4M begins a film with fps pictures per second. Width and height must be even.
func NewY4M(to io.Writer, width, height int, fps float64) (*Y4M, error) {
	if width < 2 || height < 2 || width%2 != 0 || height%2 != 0 {
		return nil, fmt.Errorf("%w: a film of %dx%d, expected even numbers", ErrSize, width, height)
	}
	y := &Y4M{to: bufio.NewWriterSize(to, 1<<20), width: width, height: height}
	for i := range y.chroma {
		y.chroma[i] = make([]uint8, width*height/4)
	}
	fmt.Fprintf(y.to, "YUV4MPEG2 W%d H%d F%d:1000 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED\n", width, height,
		int(math.Round(fps*1000)))
	return y, nil
}

// Write adds a picture.
func (y *Y4M) Write(picture *image.RGBA) error {
	if picture.Rect.Dx() != y.width || picture.Rect.Dy() != y.height {
		return fmt.Errorf("%w: %dx%d in a film of %dx%d", ErrSize, picture.Rect.Dx(), picture.Rect.Dy(), y.width,
			y.height)
	}
	y.luma.Luma(picture)
	y.subsample(picture)
	_, _ = y.to.WriteString("FRAME\n")
	_, _ = y.to.Write(y.luma.Pixels)
	_, _ = y.to.Write(y.chroma[0])
	_, err := y.to.Write(y.chroma[1])
	return err
}

// Flush writes buffered data.
func (y *Y4M) Flush() error { return y.to.Flush() }

// subsample computes the two chroma planes, one value for four pixels: the weights of BT.709 times 224/255, in
// 65536ths, plus 128 for grey.
func (y *Y4M) subsample(picture *image.RGBA) {
	for row := range y.height / 2 {
		for column := range y.width / 2 {
			var rgb [3]int32
			for i := range 4 {
				pixel := picture.Pix[(2*row+i/2)*picture.Stride+4*(2*column+i%2):][:3]
				for c, v := range pixel {
					rgb[c] += int32(v)
				}
			}
			at := row*(y.width/2) + column
			y.chroma[0][at] = uint8((-6596*rgb[0] - 22189*rgb[1] + 28784*rgb[2] + 128<<18 + 1<<17) >> 18)
			y.chroma[1][at] = uint8((28784*rgb[0] - 26145*rgb[1] - 2640*rgb[2] + 128<<18 + 1<<17) >> 18)
		}
	}
}
