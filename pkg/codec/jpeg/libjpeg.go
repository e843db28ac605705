//go:build cgo && !portable

package jpeg

// #cgo CFLAGS: -O2 -std=c11 -Wall -Wextra
// #cgo LDFLAGS: -l:libjpeg.a
// #cgo noescape volsfu_image_encode
// #cgo nocallback volsfu_image_encode
// #cgo noescape volsfu_image_decode
// #cgo nocallback volsfu_image_decode
// #include "image.h"
import "C"

import (
	"slices"
	"unsafe"
)

// pixelBytes and imageBytes limit the size of an image. As in TurboJPEG, an image has at most twice the size of its
// samples, of which there are 1.5 per pixel, plus markers. edge is the edge of an MCU with halved chroma.
const (
	pixelBytes = 3
	imageBytes = 2048
	edge       = 16
)

// Encoder encodes images.
type Encoder struct{}

// Append appends an image to dst.
func (*Encoder) Append(dst, pixels []byte, image Image) ([]byte, error) {
	padded := (image.Width + edge - 1) / edge * edge * ((image.Height + edge - 1) / edge * edge)
	room := pixelBytes*padded + imageBytes
	dst = slices.Grow(dst, room)
	tables := C.int(0)
	if image.Tables {
		tables = 1
	}
	out := C.volsfu_image_encode(bytesOf(pixels), C.int(image.Width), C.int(image.Height), C.int(image.Quality), tables,
		bytesOf(dst[len(dst):len(dst)+room]), C.size_t(room))
	switch out.status {
	case C.VOLSFU_IMAGE_OK:
		return dst[:len(dst)+int(out.size)], nil
	case C.VOLSFU_IMAGE_NO_MEMORY:
		return dst, ErrNoMemory
	}
	panic("jpeg: an image does not fit into the most that JPEG can take")
}

func bytesOf(s []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(s))) }

// Decoder decodes images.
type Decoder struct{}

// Decode decodes an image that spans all of the data into pixels, which has the size of the image. Errors wrap
// codec.ErrMalformed; the pixels are then undefined.
func (*Decoder) Decode(pixels, data []byte, image Image) error {
	quality := C.int(image.Quality)
	if image.Tables {
		quality = 0
	}
	out := C.volsfu_image_decode(bytesOf(data), C.size_t(len(data)), quality, bytesOf(pixels), C.int(image.Width),
		C.int(image.Height))
	switch out.status {
	case C.VOLSFU_IMAGE_NO_MEMORY:
		return ErrNoMemory
	case C.VOLSFU_IMAGE_MALFORMED:
		return image.malformed(data)
	}
	return nil
}
