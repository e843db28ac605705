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
)

// ErrImage says that an image is not what the intrinsics promise.
var ErrImage = errors.New("invalid image")

// workspace is the memory of one load.
type workspace struct {
	width, height int
	depth         []uint16   // in units of the camera, 0 = none
	color         [][3]uint8 // per pixel
	blobs         blobs
}

func newWorkspace(in Intrinsics) *workspace {
	pixels := in.Width * in.Height
	return &workspace{
		width: in.Width, height: in.Height,
		depth: make([]uint16, pixels),
		color: make([][3]uint8, pixels),
		blobs: newBlobs(pixels),
	}
}

// decode reads a PNG only after its header has promised the size that the intrinsics have.
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

func (w *workspace) readDepth(r io.ReadSeeker, in Intrinsics) error {
	picture, err := decode(r, in)
	if err != nil {
		return err
	}
	gray, ok := picture.(*image.Gray16)
	if !ok {
		return fmt.Errorf("%w: expected depth as 16-bit grey, got %s", ErrImage, modelName(picture.ColorModel()))
	}
	for y := range w.height {
		row, line := w.depth[y*w.width:][:w.width], gray.Pix[y*gray.Stride:]
		for x := range row {
			row[x] = uint16(line[2*x])<<8 | uint16(line[2*x+1])
		}
	}
	return nil
}

// readColor takes colours of any PNG type; transparency is passed over.
func (w *workspace) readColor(r io.ReadSeeker, in Intrinsics) error {
	picture, err := decode(r, in)
	if err != nil {
		return err
	}
	var pix []uint8
	var stride int
	switch picture := picture.(type) {
	case *image.RGBA: // what the decoder makes of PNGs without transparency
		pix, stride = picture.Pix, picture.Stride
	case *image.NRGBA:
		pix, stride = picture.Pix, picture.Stride
	default:
		converted := image.NewNRGBA(picture.Bounds())
		draw.Draw(converted, converted.Rect, picture, picture.Bounds().Min, draw.Src)
		pix, stride = converted.Pix, converted.Stride
	}
	for y := range w.height {
		row, line := w.color[y*w.width:][:w.width], pix[y*stride:]
		for x := range row {
			row[x] = [3]uint8(line[4*x : 4*x+3])
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
