//go:build !cgo || portable

package jpeg

import (
	"bytes"
	"image"
	"image/jpeg"
)

// Decoder decodes images.
type Decoder = Portable

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
