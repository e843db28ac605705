//go:build !cgo

package jpeg

import (
	"bytes"
	"image"
	"image/jpeg"

	"github.com/volsfu/volsfu/pkg/codec/jpegimage"
)

// Markers of segments (T.81, table B.1).
const (
	defineCodes        = 0xc4
	startOfScan        = 0xda
	defineQuantization = 0xdb
)

// Encoder encodes images.
type Encoder struct {
	canvas *image.RGBA
	file   bytes.Buffer
}

// Append appends an image to dst.
func (e *Encoder) Append(dst, pixels []byte, i Image) ([]byte, error) {
	if e.canvas == nil || e.canvas.Rect.Dx() != i.Width || e.canvas.Rect.Dy() != i.Height {
		e.canvas = image.NewRGBA(image.Rect(0, 0, i.Width, i.Height))
	}
	for at := range i.Width * i.Height {
		copy(e.canvas.Pix[4*at:4*at+3], pixels[channels*at:])
		e.canvas.Pix[4*at+3] = 255
	}
	e.file.Reset()
	if err := jpeg.Encode(&e.file, e.canvas, &jpeg.Options{Quality: i.Quality}); err != nil {
		return dst, err
	}
	if i.Tables {
		return append(dst, e.file.Bytes()...), nil
	}
	return withoutTables(dst, e.file.Bytes()), nil
}

// withoutTables appends an image of Go's encoder without its tables.
func withoutTables(dst, file []byte) []byte {
	dst = append(dst, file[:2]...)
	for at := 2; at < len(file); {
		end := at + 2 + int(file[at+2])<<8 + int(file[at+3])
		switch file[at+1] {
		case startOfScan:
			return append(dst, file[at:]...)
		case defineQuantization, defineCodes:
		default:
			dst = append(dst, file[at:end]...)
		}
		at = end
	}
	panic("jpeg: Go's encoder wrote no scan")
}

// tablesOf returns the segments of all tables of a quality.
func tablesOf(quality int) (found []byte) {
	var written bytes.Buffer
	pixel := image.NewRGBA(image.Rect(0, 0, 1, 1))
	if err := jpeg.Encode(&written, pixel, &jpeg.Options{Quality: quality}); err != nil {
		panic("jpeg: Go's encoder failed on one pixel: " + err.Error())
	}
	file := written.Bytes()
	for at := 2; file[at+1] != startOfScan; {
		end := at + 2 + int(file[at+2])<<8 + int(file[at+3])
		if file[at+1] == defineQuantization || file[at+1] == defineCodes {
			found = append(found, file[at:end]...)
		}
		at = end
	}
	return found
}

// Decoder decodes images.
type Decoder struct {
	file    []byte
	quality int
	tables  []byte
}

// Decode decodes an image that spans all of the data into pixels, which has the size of the image. Errors wrap
// codec.ErrMalformed; the pixels are then undefined.
func (d *Decoder) Decode(pixels, data []byte, i Image) error {
	if len(data) < 2 {
		return i.malformed(data)
	}
	d.file = append(d.file[:0], data[:2]...)
	if !i.Tables {
		if d.quality != i.Quality {
			d.quality, d.tables = i.Quality, tablesOf(i.Quality)
		}
		d.file = append(d.file, d.tables...)
	}
	d.file = append(d.file, data[2:]...)
	if _, err := jpegimage.Decode(pixels[:0], d.file, i.Width, i.Height); err != nil {
		return i.malformed(data)
	}
	return nil
}
