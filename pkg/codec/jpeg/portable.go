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

// Portable decodes images in Go. It is the Decoder of programs without cgo.
type Portable struct {
	file    []byte
	quality int
	tables  []byte
}

// Decode decodes an image that spans all of the data into pixels, which has the size of the image. Errors wrap
// codec.ErrMalformed and give the reason; the pixels are then undefined.
func (d *Portable) Decode(pixels, data []byte, i Image) error {
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
	_, err := jpegimage.Decode(pixels[:0], d.file, i.Width, i.Height)
	return err
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
