package dracojpeg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/jpegimage"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Markers of the tables of a JPEG file (T.81, table B.1).
const (
	quantisation  = 0xdb
	huffmanTables = 0xc4
)

// portableDecoder decodes in Go, for programs without cgo.
type portableDecoder struct {
	geometry codec.Announcer
	// tables has the omitted tables of a quality, 0 before the first frame.
	tables  []byte
	quality int
	file    []byte
	pixels  []byte
}

// Announced implements codec.Announcer.
func (d *portableDecoder) Announced(data []byte) (int, error) { return announced(d.geometry, data) }

// Decode replaces the cloud's points by the frame's.
func (d *portableDecoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := d.decode(cloud, data); err != nil {
		cloud.Reset()
		return fmt.Errorf("decode draco+jpeg: %w", err)
	}
	return nil
}

func (d *portableDecoder) decode(cloud *pointcloud.Cloud, data []byte) error {
	f, err := decodeGeometry(d.geometry, cloud, data)
	if err != nil || f.quality == 0 {
		return err
	}
	if len(f.image) < 2 {
		return fmt.Errorf("%w: image has %d bytes, expected at least 2", codec.ErrMalformed, len(f.image))
	}
	if d.quality != f.quality {
		d.tables, d.quality = tablesOf(f.quality), f.quality
	}
	d.file = append(d.file[:0], f.image[:2]...)
	d.file = append(d.file, d.tables...)
	d.file = append(d.file, f.image[2:]...)
	l := layoutOf(cloud.Len())
	if d.pixels, err = jpegimage.Decode(d.pixels, d.file, l.width, l.height); err != nil {
		return err
	}
	l.read(cloud.Colors, d.pixels)
	return nil
}

// tablesOf returns the tables of a quality. Package image/jpeg writes those of the same annexes, scaled in the same
// way.
func tablesOf(quality int) (tables []byte) {
	var file bytes.Buffer
	picture := image.NewRGBA(image.Rect(0, 0, squareEdge, squareEdge))
	if err := jpeg.Encode(&file, picture, &jpeg.Options{Quality: quality}); err != nil {
		panic(fmt.Sprintf("dracojpeg: an image cannot be written into memory: %v", err))
	}
	for _, marker := range []byte{quantisation, huffmanTables} {
		from := file.Bytes()[bytes.Index(file.Bytes(), []byte{0xff, marker}):]
		tables = append(tables, from[:2+int(binary.BigEndian.Uint16(from[2:]))]...)
	}
	return tables
}
