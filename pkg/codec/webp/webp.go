// Package webp codes colour images of a known size as lossy WebP (RFC 9649), for the frames of other codecs. The files
// have the simple format: one chunk with one key frame of VP8 (RFC 6386), whose chroma is halved in both directions.
//
// Encoding needs libwebp, which is opened at run time. Decoding uses libwebp if available, or else golang.org/x/image;
// both produce the same pixels. Encoders and decoders keep their memory; each is used by one goroutine at a time.
package webp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
)

// MaxEdge is the largest width and height of an image in pixels (RFC 6386, section 9.1).
const MaxEdge = 1<<14 - 1

// channels is the number of bytes per pixel: red, green and blue.
const channels = 3

// ErrUnavailable reports that there is no libwebp, and how to install one.
var ErrUnavailable = errors.New("libwebp is not available")

// errEncode reports a failed encoding.
var errEncode = errors.New("libwebp cannot encode the image")

// The layout of a file: the header of RIFF with the size behind its 8 bytes, "WEBP", and the header of the chunk. The
// frame of VP8 has a tag of 3 bytes, whose lowest bit is 0 for key frames, a start code, and both edges of 14 bits.
const (
	chunkAt   = 12
	frameAt   = 20
	startAt   = frameAt + 3
	sizesAt   = startAt + 3
	leastFile = sizesAt + 4
	edgeMask  = MaxEdge
)

// Check checks that the data are one file of the simple format with an image of the given size. It reads the headers
// only. Errors wrap codec.ErrMalformed.
func Check(data []byte, width, height int) error {
	malformed := func(format string, arguments ...any) error {
		return fmt.Errorf("%w: WebP image of %d bytes has %s, expected the simple lossy format with %d×%d pixels",
			codec.ErrMalformed, len(data), fmt.Sprintf(format, arguments...), width, height)
	}
	if len(data) < leastFile {
		return malformed("no whole header")
	}
	riff, chunk := binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[chunkAt+4:])
	// A chunk of an odd size is followed by a byte of 0.
	padded := uint64(chunk) + uint64(chunk&1)
	switch {
	case string(data[:4]) != "RIFF" || string(data[8:frameAt-4]) != "WEBPVP8 ":
		return malformed("the header % x", data[:frameAt-4])
	case uint64(riff) != uint64(len(data)-8) || frameAt+padded != uint64(len(data)):
		return malformed("the sizes %d and %d", riff, chunk)
	case data[frameAt]&1 != 0 || string(data[startAt:sizesAt]) != "\x9d\x01\x2a":
		return malformed("no key frame")
	}
	// The two highest bits are the scale for drawing.
	across := int(binary.LittleEndian.Uint16(data[sizesAt:])) & edgeMask
	down := int(binary.LittleEndian.Uint16(data[sizesAt+2:])) & edgeMask
	if across != width || down != height {
		return malformed("%d×%d pixels", across, down)
	}
	return nil
}

// planes is an image in Y'CbCr of BT.601 with values of 16 to 235, whose chroma is halved in both directions. A row of
// luma has width bytes, and one of chroma (width + 1) / 2.
type planes struct {
	width, height   int
	luma, blue, red []byte
}

// reset sets the size.
func (p *planes) reset(width, height int) {
	p.width, p.height = width, height
	luma, chroma := width*height, p.chroma()*((height+1)/2)
	p.luma = slices.Grow(p.luma[:0], luma)[:luma]
	p.blue = slices.Grow(p.blue[:0], chroma)[:chroma]
	p.red = slices.Grow(p.red[:0], chroma)[:chroma]
}

// chroma returns the width of a row of chroma.
func (p *planes) chroma() int { return (p.width + 1) / 2 }

// Decoder decodes images.
type Decoder struct{ memory *memory }

// Decode decodes an image that spans all of the data into pixels, which has three bytes for each pixel. A value of
// chroma applies to four pixels, without interpolation, because neighbours in an image of points may be far from each
// other. Errors wrap codec.ErrMalformed; the pixels are then undefined.
func (d *Decoder) Decode(pixels, data []byte, width, height int) error {
	if err := Check(data, width, height); err != nil {
		return err
	}
	if d.memory == nil {
		d.memory = newMemory()
	}
	library, _ := found()
	if library == nil {
		return decodePortably(pixels, data, width, height)
	}
	p := &d.memory.planes
	p.reset(width, height)
	if !library.decode(d.memory, data) {
		return fmt.Errorf("%w: libwebp cannot decode a WebP image of %d bytes", codec.ErrMalformed, len(data))
	}
	toPixels(pixels, p.luma, width, p.blue, p.red, p.chroma(), width)
	return nil
}

// Encoder encodes images.
type Encoder struct{ memory *memory }

// Append appends an image of pixels with three bytes each to dst; width and height are 1 to MaxEdge. The quality is on
// the scale of JPEG, 1 to 100. Errors wrap ErrUnavailable if there is no libwebp. On error the result is dst.
func (e *Encoder) Append(dst, pixels []byte, width, height, quality int) ([]byte, error) {
	library, err := found()
	if err != nil {
		return dst, err
	}
	if e.memory == nil {
		e.memory = newMemory()
	}
	e.memory.planes.reset(width, height)
	e.memory.planes.fromPixels(pixels)
	return library.encode(e.memory, dst, scaled(quality))
}

// scaled returns libwebp's quality for a quality of JPEG. With equal errors of luma, libwebp's is 11 lower for a seated
// person at 80 to 85, whose colours come from a compressed video, and 2 higher for an Azure Kinect.
func scaled(quality int) float32 { return max(0, 100-1.3*float32(100-quality)) }
