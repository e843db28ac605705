// Package jpeg codes colour images of a known size as JPEG, for the frames of other codecs: baseline, 8 bits per
// sample, three components in one scan, chroma halved in both directions. Programs with cgo use libjpeg-turbo, others
// Go's image/jpeg with the same tables.
//
// The tables of an image may be omitted (Rec. ITU-T T.81, annex B.5, "abbreviated format"), which saves about 560
// bytes: the quantization tables are then those of T.81, annex K.1, scaled by the quality as in libjpeg, and the
// Huffman tables those of annex K.3.
//
// Encoders and decoders keep their memory; each is used by one goroutine at a time.
package jpeg

import (
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

// MaxEdge is the largest width and height of an image in pixels, as in libjpeg.
const MaxEdge = 65500

// channels is the number of bytes per pixel: red, green and blue.
const channels = 3

// ErrNoMemory reports that C could not allocate memory.
var ErrNoMemory = errors.New("jpeg: out of memory")

// Image describes an image. A pixel has three bytes in RGB order; rows follow each other without gaps.
type Image struct {
	// Width and Height are 1 to MaxEdge.
	Width, Height int
	// Quality is 1 to 100. A decoder ignores the quality of an image with tables.
	Quality int
	// Tables reports that the image contains its tables: it is a JPEG file.
	Tables bool
}

// Bytes returns the size of the pixels in bytes.
func (i Image) Bytes() int { return channels * i.Width * i.Height }

// malformed returns the error of data that is no image of this form.
func (i Image) malformed(data []byte) error {
	return fmt.Errorf("%w: %d bytes, expected one baseline JPEG image of %d×%d pixels with halved chroma",
		codec.ErrMalformed, len(data), i.Width, i.Height)
}
