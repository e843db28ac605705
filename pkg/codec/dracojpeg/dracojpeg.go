// Package dracojpeg implements the codec "draco+jpeg" (FourCC "drcj"): geometry in the bit stream
// of Google's Draco without colours, and the colours as a JPEG image whose pixels are the points in
// the order in which Draco decodes them. Colours are lossy, with quality Params.ColorQuality;
// positions are exactly those of the codec "draco". The package registers the codec if it is
// imported. Built with cgo, against Debian's libdraco-dev and libjpeg-dev (libjpeg-turbo, which
// needs a sixth of the time of image/jpeg), it encodes and decodes. Built without cgo, it decodes in
// Go.
//
// All numbers of a frame are little-endian:
//
//	offset  size  content
//	0       4     size g of the geometry in bytes, at least 1
//	4       1     quality of the colours on the scale of JPEG, 1 to 100; 0 for a frame without colours,
//	              all of whose points are white
//	5       g     a frame of the codec "draco" without colours
//	5+g     rest  with colours, the image, in the abbreviated format of Rec. ITU-T T.81, annex B.5
//
// Draco traverses a tree, so that consecutive points are close in space. The image preserves this:
// each group of 256 points forms a square of 16×16 pixels, in which the points follow a Hilbert
// curve. Squares follow each other from left to right, at most 16 per row, and from top to bottom.
// Unused pixels repeat the last colour. A square is an MCU of JPEG: luma in four blocks of 8×8, and
// one block for each chroma component, halved in both directions. Points of different squares
// therefore share nothing but the means that are coded as differences.
//
// The image contains no tables, because both sides know them; this saves about 570 bytes per tile.
// The quantization tables are those of T.81, annex K.1, scaled by the quality as in libjpeg; the
// Huffman tables are those of annex K.3. With these tables in front the image is a JPEG file.
// Images that contain tables are decoded, too.
//
// Encoders and decoders keep their memory; each is used by one goroutine at a time.
package dracojpeg

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

// ErrUnavailable explains how to build a program that encodes this codec. ErrUnavailable is the reason if Available is
// false, and wraps codec.ErrUnknown.
var ErrUnavailable = fmt.Errorf(
	"%w: this program only decodes draco+jpeg; build with CGO_ENABLED=1 after "+
		"apt-get install g++ libdraco-dev libjpeg-dev libopus-dev libspeex-dev",
	codec.ErrUnknown,
)
