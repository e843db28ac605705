package kinect

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// colorFormat is the format of the images of a colour track.
type colorFormat string

// The formats that the sensor SDK records.
const (
	formatMJPG colorFormat = "MJPG" // JPEG
	formatNV12 colorFormat = "NV12" // luma, then pairs of chroma for 2 × 2 pixels
	formatYUY2 colorFormat = "YUY2" // Y0 U Y1 V for 2 pixels
	formatBGRA colorFormat = "BGRA"
)

// size returns the size of an image in bytes, or 0 if it varies.
func (f colorFormat) size(width, height int) int {
	switch f {
	case formatNV12:
		return width * height * 3 / 2
	case formatYUY2:
		return width * height * 2
	case formatBGRA:
		return width * height * 4
	}
	return 0
}

// decodeColor returns the decoded picture of an image. If possible, the picture refers to the
// memory of data.
func decodeColor(data []byte, format colorFormat, width, height int) (depth.Picture, error) {
	if want := format.size(width, height); want != 0 && len(data) != want {
		return nil, fmt.Errorf(
			"%w: %d bytes of %s, expected %d for %d × %d pixels",
			ErrColor,
			len(data),
			format,
			want,
			width,
			height,
		)
	}
	switch format {
	case formatNV12:
		return nv12{data, width, width * height}, nil
	case formatYUY2:
		return yuy2{data, width}, nil
	case formatBGRA:
		return bgra{data, width}, nil
	}
	header, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrColor, err)
	}
	if header.Width != width || header.Height != height {
		return nil, fmt.Errorf(
			"%w: expected %d × %d pixels as its track has, got %d × %d",
			ErrColor,
			width,
			height,
			header.Width,
			header.Height,
		)
	}
	picture, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrColor, err)
	}
	switch picture := picture.(type) {
	case *image.YCbCr:
		return (*ycbcr)(picture), nil
	case *image.Gray:
		return (*gray)(picture), nil
	}
	return nil, fmt.Errorf("%w: a JPEG of four colours", ErrColor)
}

type (
	ycbcr image.YCbCr
	gray  image.Gray
	nv12  struct {
		data          []byte
		width, pixels int
	}
	yuy2 struct {
		data  []byte
		width int
	}
	bgra struct {
		data  []byte
		width int
	}
)

func rgb(y, cb, cr uint8) [3]uint8 {
	r, g, b := color.YCbCrToRGB(y, cb, cr)
	return [3]uint8{r, g, b}
}

// RGB implements depth.Picture.
func (p *ycbcr) RGB(x, y int) [3]uint8 {
	c := (*image.YCbCr)(p).COffset(x, y)
	return rgb(p.Y[y*p.YStride+x], p.Cb[c], p.Cr[c])
}

// RGB implements depth.Picture.
func (p *gray) RGB(x, y int) [3]uint8 {
	v := p.Pix[y*p.Stride+x]
	return [3]uint8{v, v, v}
}

// video converts video luma, 16 to 235, and chroma to colours by BT.601, as used by the cameras'
// raw formats.
func video(y, cb, cr uint8) [3]uint8 {
	luma, u, v := 298*(int(y)-16)+128, int(cb)-128, int(cr)-128
	clamp := func(c int) uint8 { return uint8(min(max(c>>8, 0), 255)) }
	return [3]uint8{clamp(luma + 409*v), clamp(luma - 100*u - 208*v), clamp(luma + 516*u)}
}

// RGB implements depth.Picture.
func (p nv12) RGB(x, y int) [3]uint8 {
	c := p.data[p.pixels+y/2*p.width+x&^1:]
	return video(p.data[y*p.width+x], c[0], c[1])
}

// RGB implements depth.Picture.
func (p yuy2) RGB(x, y int) [3]uint8 {
	pair := p.data[2*(y*p.width+x&^1):]
	return video(pair[x&1*2], pair[1], pair[3])
}

// RGB implements depth.Picture.
func (p bgra) RGB(x, y int) [3]uint8 {
	pixel := p.data[4*(y*p.width+x):]
	return [3]uint8{pixel[2], pixel[1], pixel[0]}
}
