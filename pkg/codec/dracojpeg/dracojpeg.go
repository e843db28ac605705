// Package dracojpeg is the codec "draco+jpeg" (FourCC "drcj"): geometry in the bit stream of
// Google's Draco without colours, and the colours as a JPEG image whose pixels are the points in
// the order in which Draco decodes them. Colours are coded with loss, as Params.ColorQuality says;
// positions are exactly those of the codec "draco". It registers itself with package codec when it
// is imported and built with cgo, against Debian's libdraco-dev and libjpeg-dev (libjpeg-turbo,
// which takes a sixth of the time of image/jpeg).
//
// A frame is, with all numbers little-endian,
//
//	offset  size  what
//	0       4     number of bytes g of the geometry, at least 1
//	4       1     quality of the colours, 1 to 100 as JPEG counts it; 0 for a frame without colours, all of whose points are white
//	5       g     a frame of the codec "draco" without colours
//	5+g     rest  where there are colours, the image, in the abbreviated format of Rec. ITU-T T.81, annex B.5
//
// Draco walks down a tree, so that points which follow each other lie beside each other. The image
// keeps it so: 256 points at a time make a square of 16×16 pixels, in which they follow a Hilbert
// curve, and squares follow each other from left to right, at most 16 in a row, and from top to
// bottom. The pixels that are left over repeat the last colour. A square is what JPEG calls an MCU:
// luma in four blocks of 8×8, chroma halved in both directions in a block each, so that points of
// different squares share nothing but the means that are coded as differences.
//
// Tables are left out of the image since both sides know them, which saves some 570 bytes of a
// tile: the quantisation tables are those of T.81, annex K.1, scaled by the quality as libjpeg
// does, the Huffman tables those of annex K.3. With these in front it is a JPEG file. Images that
// carry tables decode as well.
//
// Encoders and decoders keep their memory; each is used by one goroutine at a time.
package dracojpeg

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
)

// ErrUnavailable says how to build a program that has this codec. It is the reason wherever
// Available is false, and wraps codec.ErrUnknown.
var ErrUnavailable = fmt.Errorf(
	"%w: draco+jpeg is not built in; build with CGO_ENABLED=1 after apt-get install g++ libdraco-dev libjpeg-dev libopus-dev libspeex-dev",
	codec.ErrUnknown,
)
