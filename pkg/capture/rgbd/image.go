package rgbd

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// ErrImage reports that an image does not match the intrinsics.
var ErrImage = errors.New("invalid image")

// decode checks the size in the header of a PNG against the intrinsics before it reads the rest.
func decode(r io.ReadSeeker, in Intrinsics) (image.Image, error) {
	buffered := bufio.NewReader(r)
	header, err := png.DecodeConfig(buffered)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImage, err)
	}
	if header.Width != in.Width || header.Height != in.Height {
		return nil, fmt.Errorf("%w: expected %d × %d pixels as in %s, got %d × %d",
			ErrImage, in.Width, in.Height, IntrinsicsFile, header.Width, header.Height)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	buffered.Reset(r)
	picture, err := png.Decode(buffered)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImage, err)
	}
	return picture, nil
}

func readDepth(r io.ReadSeeker, in Intrinsics, into *depth.Image) error {
	picture, err := decode(r, in)
	if err != nil {
		return err
	}
	gray, ok := picture.(*image.Gray16)
	if !ok {
		return fmt.Errorf("%w: expected depth as 16-bit grey, got %s", ErrImage, modelName(picture.ColorModel()))
	}
	into.Depth = readGray16(gray, in, into.Depth)
	return nil
}

func readGray16(gray *image.Gray16, in Intrinsics, into []uint16) []uint16 {
	into = slices.Grow(into[:0], in.Width*in.Height)
	for y := range in.Height {
		line := gray.Pix[y*gray.Stride:][:2*in.Width]
		for x := 0; x < len(line); x += 2 {
			into = append(into, uint16(line[x])<<8|uint16(line[x+1]))
		}
	}
	return into
}

// readColors reads colours of any PNG type; transparency is ignored.
func readColors(r io.ReadSeeker, in Intrinsics, into *depth.Image) error {
	picture, err := decode(r, in)
	if err != nil {
		return err
	}
	var pix []uint8
	var stride int
	switch picture := picture.(type) {
	case *image.RGBA: // result of the decoder for PNGs without transparency
		pix, stride = picture.Pix, picture.Stride
	case *image.NRGBA:
		pix, stride = picture.Pix, picture.Stride
	default:
		converted := image.NewNRGBA(picture.Bounds())
		draw.Draw(converted, converted.Rect, picture, picture.Bounds().Min, draw.Src)
		pix, stride = converted.Pix, converted.Stride
	}
	into.Colors = slices.Grow(into.Colors[:0], in.Width*in.Height)
	for y := range in.Height {
		line := pix[y*stride:][:4*in.Width]
		for x := 0; x < len(line); x += 4 {
			into.Colors = append(into.Colors, [3]uint8(line[x:x+3]))
		}
	}
	return nil
}

// readLabels reads greys as labels; for a palette, the index is the label.
func readLabels(r io.ReadSeeker, in Intrinsics, into *depth.Image) error {
	picture, err := decode(r, in)
	if err != nil {
		return err
	}
	var pix []uint8
	var stride int
	switch picture := picture.(type) {
	case *image.Gray16:
		into.Labels = readGray16(picture, in, into.Labels)
		return nil
	case *image.Gray:
		pix, stride = picture.Pix, picture.Stride
	case *image.Paletted:
		pix, stride = picture.Pix, picture.Stride
	default:
		return fmt.Errorf(
			"%w: expected labels in grey or as a palette, got %s",
			ErrImage,
			modelName(picture.ColorModel()),
		)
	}
	into.Labels = slices.Grow(into.Labels[:0], in.Width*in.Height)
	for y := range in.Height {
		for _, label := range pix[y*stride:][:in.Width] {
			into.Labels = append(into.Labels, uint16(label))
		}
	}
	return nil
}

func modelName(model color.Model) string {
	switch model {
	case color.GrayModel:
		return "8-bit grey"
	case color.RGBAModel, color.NRGBAModel:
		return "8-bit colours"
	case color.RGBA64Model, color.NRGBA64Model:
		return "16-bit colours"
	}
	return "a palette"
}
