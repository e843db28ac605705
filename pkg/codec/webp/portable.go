package webp

import (
	"bytes"
	"fmt"

	"golang.org/x/image/vp8"

	"github.com/volsfu/volsfu/pkg/codec"
)

// decodePortably decodes a checked file in Go.
func decodePortably(pixels, data []byte, width, height int) error {
	d := vp8.NewDecoder()
	d.Init(bytes.NewReader(data[frameAt:]), len(data)-frameAt)
	header, err := d.DecodeFrameHeader()
	if err == nil && (header.Width != width || header.Height != height) {
		panic("webp: the size of a frame is not that of its header")
	}
	if err != nil {
		return fmt.Errorf("%w: WebP image of %d bytes: %v", codec.ErrMalformed, len(data), err)
	}
	decoded, err := d.DecodeFrame()
	if err != nil {
		return fmt.Errorf("%w: WebP image of %d bytes: %v", codec.ErrMalformed, len(data), err)
	}
	toPixels(pixels, decoded.Y, decoded.YStride, decoded.Cb, decoded.Cr, decoded.CStride, width)
	return nil
}
