// Package planes decompresses Zstandard data of codecs that store values byte by byte, one plane of
// bytes after the other.
package planes

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/volsfu/volsfu/pkg/codec"
)

// Decompressor decompresses planes and keeps its working memory. The zero value is ready to use. A
// Decompressor is used by one goroutine at a time.
type Decompressor struct {
	planes       []byte
	decompressor *zstd.Decoder
}

// Decompress returns the planes, of size bytes in total. They are valid until the next call. Errors
// in the data wrap codec.ErrMalformed.
func (d *Decompressor) Decompress(data []byte, size int) (_ []byte, err error) {
	if d.decompressor == nil {
		// No frame needs more memory than the planes, which are allocated already.
		d.decompressor, err = zstd.NewReader(
			nil,
			zstd.WithDecoderConcurrency(1),
			zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderLowmem(true),
		)
		if err != nil {
			return nil, err
		}
	}
	d.planes = slices.Grow(d.planes[:0], size)
	planes, err := d.decompressor.DecodeAll(data, d.planes[:0:size])
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", codec.ErrMalformed, err)
	case len(planes) != size:
		return nil, fmt.Errorf("%w: %d bytes decompressed, expected %d", codec.ErrMalformed, len(planes), size)
	}
	d.planes = planes
	return planes, nil
}
