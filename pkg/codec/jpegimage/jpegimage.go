// Package jpegimage decodes the JPEG images of codecs in Go. An image must have the single form that encoders of
// volsfu and VR2Gather produce, so that its size bounds memory and time.
package jpegimage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
)

// Channels is the number of bytes of a decoded pixel: red, green, blue.
const Channels = 3

// Markers of Rec. ITU-T T.81, table B.1.
const (
	startOfImage    = 0xd8
	endOfImage      = 0xd9
	startOfFrame    = 0xc0 // baseline
	startOfScan     = 0xda
	huffmanTables   = 0xc4
	quantisation    = 0xdb
	restartInterval = 0xdd
	comment         = 0xfe
	firstRestart    = 0xd0
	lastRestart     = 0xd7
	firstApp        = 0xe0
	lastApp         = 0xef
)

// sampling has the sampling factors of the components: luma whole, chroma halved in both directions.
var sampling = [...]byte{0x22, 0x11, 0x11}

// Decode decodes an image that spans all of the data, and returns its pixels from left to right and from top to bottom
// in pixels, which is reused if it is large enough. The image must be baseline with 8 bits, three components with
// halved chroma, and one scan, and have exactly the given size. A value of chroma applies to four pixels, without
// interpolation, because neighbours in an image of points may be far from each other. Errors wrap codec.ErrMalformed.
func Decode(pixels, data []byte, width, height int) ([]byte, error) {
	if err := check(data, width, height); err != nil {
		return pixels[:0], err
	}
	decoded, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return pixels[:0], fmt.Errorf("%w: image of %d bytes: %v", codec.ErrMalformed, len(data), err)
	}
	planes, ok := decoded.(*image.YCbCr)
	if !ok || planes.SubsampleRatio != image.YCbCrSubsampleRatio420 {
		return pixels[:0], fmt.Errorf("%w: image has the colours of a %T, expected Y'CbCr with halved chroma",
			codec.ErrMalformed, decoded)
	}
	pixels = slices.Grow(pixels[:0], Channels*width*height)
	for y := range height {
		luma := planes.Y[y*planes.YStride:]
		blue, red := planes.Cb[y/2*planes.CStride:], planes.Cr[y/2*planes.CStride:]
		for x := range width {
			r, g, b := color.YCbCrToRGB(luma[x], blue[x/2], red[x/2])
			pixels = append(pixels, r, g, b)
		}
	}
	return pixels, nil
}

// check checks the form of an image. A progressive image or one with several scans would need all of its coefficients
// at once.
func check(data []byte, width, height int) error {
	malformed := func(format string, arguments ...any) error {
		return fmt.Errorf("%w: %s in an image of %d bytes, expected baseline, %d×%d pixels, three components with "+
			"halved chroma, one scan", codec.ErrMalformed, fmt.Sprintf(format, arguments...), len(data), width, height)
	}
	if len(data) < 2 || data[0] != 0xff || data[1] != startOfImage {
		return malformed("no start")
	}
	framed, scanned := false, false
	for at := 2; ; {
		if at+2 > len(data) || data[at] != 0xff {
			return malformed("no segment at byte %d", at)
		}
		marker := data[at+1]
		if marker == endOfImage && scanned {
			if rest := len(data) - at - 2; rest > 0 {
				return malformed("%d bytes behind the end", rest)
			}
			return nil
		}
		segment, ok := segmentAt(data, at)
		if !ok {
			return malformed("no whole segment at byte %d", at)
		}
		at += 4 + len(segment)
		switch {
		case marker == startOfFrame && !framed && isFrame(segment, width, height):
			framed = true
		case marker == startOfScan && framed && !scanned && isScan(segment):
			scanned = true
			at = behindScan(data, at)
		case marker == huffmanTables, marker == quantisation, marker == restartInterval, marker == comment,
			marker >= firstApp && marker <= lastApp:
		default:
			return malformed("segment ff %02x", marker)
		}
	}
}

// segmentAt returns the content of the segment whose marker is at an offset.
func segmentAt(data []byte, at int) (content []byte, ok bool) {
	if at+4 > len(data) {
		return nil, false
	}
	length := int(binary.BigEndian.Uint16(data[at+2:]))
	if length < 2 || at+2+length > len(data) {
		return nil, false
	}
	return data[at+4 : at+2+length], true
}

// isFrame reports whether the header of a frame (T.81, B.2.2) has the expected form.
func isFrame(segment []byte, width, height int) bool {
	if len(segment) != 6+3*len(sampling) || segment[0] != 8 || int(segment[5]) != len(sampling) ||
		int(binary.BigEndian.Uint16(segment[1:])) != height || int(binary.BigEndian.Uint16(segment[3:])) != width {
		return false
	}
	for i, factors := range sampling {
		if segment[7+3*i] != factors {
			return false
		}
	}
	return true
}

// isScan reports whether the header of a scan (T.81, B.2.3) has all components, with all coefficients and bits.
func isScan(segment []byte) bool {
	return len(segment) == 4+2*len(sampling) && int(segment[0]) == len(sampling) &&
		segment[7] == 0 && segment[8] == 63 && segment[9] == 0
}

// behindScan returns the offset of the first marker after the data of a scan that is no restart. A zero after ff means
// that ff is data, and several ff may precede a marker (T.81, B.1.1).
func behindScan(data []byte, at int) int {
	for ; at+1 < len(data); at++ {
		next := data[at+1]
		if data[at] == 0xff && next != 0 && next != 0xff && (next < firstRestart || next > lastRestart) {
			return at
		}
	}
	return len(data)
}
