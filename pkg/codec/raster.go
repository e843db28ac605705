package codec

import (
	"fmt"
	"image"
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// RasterParams contains the encoding parameters of one quality of one tile of a depth camera's image.
type RasterParams struct {
	// Rect is the tile in pixels of the camera's image. The corners are multiples of 2^Reduction, or at the border of
	// the image.
	Rect image.Rectangle
	// Reduction is the base-2 logarithm of the pixels of the image per pixel of the frame, in each direction: 0 to
	// MaxReduction.
	Reduction int
	// Step is the distance of two neighbouring depths in metres, at a depth of 1 m if Growing.
	Step float64
	// Growing selects steps that grow with the square of the depth, as the error of a stereo camera does.
	Growing bool
	// NoColors omits the colours: all points are White when decoded.
	NoColors bool
	// ColorQuality is the quality of the colours on the scale of JPEG, 1 to 100; 0 means DefaultColorQuality.
	ColorQuality int
	// File makes the colours a complete image file, which every browser decodes, instead of an image without tables.
	File bool
	// WebP codes the colours as a complete WebP file, about two thirds of the size of a JPEG file, and takes precedence
	// over File. Encoding needs libwebp: see package webp.
	WebP bool
	// CameraID is written to the frame. It differs between the cameras of a publication, so that receivers can keep
	// tables for each camera.
	CameraID uint32
}

// Limits on raster parameters.
const (
	// MaxReduction is the largest reduction: a quarter of the image in each direction.
	MaxReduction = 2
	// MinStep and MaxStep are the limits of a step in metres. 1 µm is finer than any depth camera.
	MinStep = 1e-6
	MaxStep = 1
)

// Validate returns an error that wraps ErrParams for the first value that is invalid for images of a camera.
func (p RasterParams) Validate(camera *depth.Camera) error {
	whole := image.Rect(0, 0, camera.Width, camera.Height)
	switch {
	case p.Reduction < 0 || p.Reduction > MaxReduction:
		return fmt.Errorf("%w: reduction is %d, expected 0 to %d", ErrParams, p.Reduction, MaxReduction)
	case !(p.Step >= MinStep && p.Step <= MaxStep):
		return fmt.Errorf("%w: step is %g m, expected %g to %g", ErrParams, p.Step, float64(MinStep), float64(MaxStep))
	case p.ColorQuality < 0 || p.ColorQuality > 100:
		return fmt.Errorf("%w: colour quality is %d, expected 1 to 100, or 0 for %d", ErrParams, p.ColorQuality,
			DefaultColorQuality)
	case p.Rect.Empty() || !p.Rect.In(whole):
		return fmt.Errorf("%w: rectangle is %v, expected pixels within %v", ErrParams, p.Rect, whole)
	}
	edge := 1 << p.Reduction
	if p.Rect.Min.X%edge != 0 || p.Rect.Min.Y%edge != 0 ||
		p.Rect.Max.X%edge != 0 && p.Rect.Max.X != camera.Width ||
		p.Rect.Max.Y%edge != 0 && p.Rect.Max.Y != camera.Height {
		return fmt.Errorf("%w: rectangle is %v, expected multiples of %d pixels", ErrParams, p.Rect, edge)
	}
	return nil
}

// RasterEncoder encodes a part of a depth camera's image as one frame. The encoders of codecs whose Capabilities are
// Rasters implement it.
type RasterEncoder interface {
	Encoder
	// EncodeRaster appends a frame to dst with the pixels of the rectangle that have a depth, and returns the frame and
	// the number of its points. Pixels that are not part of the object have no depth. Without such a pixel dst is
	// returned unchanged: a tile without points is a frame of length 0. If the parameters or the image cannot be
	// encoded, dst is returned unchanged and the error wraps ErrParams.
	EncodeRaster(dst []byte, camera *depth.Camera, from *depth.Image, params RasterParams) (frame []byte, points int,
		err error)
}

// RasterDecoder is a Decoder whose frames are parts of depth cameras' images.
type RasterDecoder interface {
	Decoder
	// DecodeRaster replaces the raster by that of a frame. Errors are those of Decode; the raster is then empty.
	DecodeRaster(raster *Raster, data []byte) error
}

// Raster is a decoded part of a depth camera's image.
type Raster struct {
	// Camera describes the camera of the whole image. Its Name and Unit are empty.
	Camera depth.Camera
	// ID is the camera's RasterParams.CameraID.
	ID uint32
	// Reduction is the base-2 logarithm of the camera's pixels per pixel of the raster, in each direction.
	Reduction int
	// Rect is the tile in pixels of the reduced raster.
	Rect image.Rectangle
	// Depths contains the depths of the rectangle's pixels in metres, row by row; 0 means no point.
	Depths []float32
	// Colors contains the colours of the same pixels. Those of pixels without a point have no meaning.
	Colors [][3]uint8
}

// Reset makes the raster empty and keeps its memory.
func (r *Raster) Reset() {
	*r = Raster{Depths: r.Depths[:0], Colors: r.Colors[:0]}
}

// Pixel returns the position of a raster's pixel in the camera's image, in pixels: the centre of the pixels that the
// raster combines. The centre of the image's first pixel is at (0, 0).
func (r *Raster) Pixel(x, y int) (u, v float64) {
	edge := math.Ldexp(1, r.Reduction)
	return (float64(r.Rect.Min.X+x)+0.5)*edge - 0.5, (float64(r.Rect.Min.Y+y)+0.5)*edge - 0.5
}
