// Package segments is in the manner of low-latency DASH: each tile at each quality is a sequence of segments that its publisher uploads over HTTP,
// with chunked transfer, while they come into being, and that whoever watches downloads meanwhile, one after the other, each when the one before has
// ended. Another quality begins with the next segment. The server keeps the latest segments.
package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/volsfu/volsfu/lab/carriage"
)

// BoxHeaderSize is the size of a box's header, in bytes: its size with the header, and its type, as ISO base media files have it (ISO/IEC 14496-12
// section 4.2).
const BoxHeaderSize = 8

// boxType is that of a box with a frame.
var boxType = [4]byte{'m', 'd', 'a', 't'}

// ErrBox is wrapped with the box that cannot be read.
var ErrBox = errors.New("malformed box")

// AppendBoxHeader appends the header of a box with a frame of so many bytes.
func AppendBoxHeader(dst []byte, length int) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(BoxHeaderSize+length)), boxType[:]...)
}

// ParseBoxHeader reads the header of a box and gives the length of its frame. Errors wrap ErrBox.
func ParseBoxHeader(data []byte) (length int, err error) {
	if len(data) < BoxHeaderSize {
		return 0, fmt.Errorf("%w: %d bytes, expected at least %d", ErrBox, len(data), BoxHeaderSize)
	}
	size := binary.BigEndian.Uint32(data)
	if [4]byte(data[4:]) != boxType || size < BoxHeaderSize || size > BoxHeaderSize+carriage.MaxFrameBytes {
		return 0, fmt.Errorf("%w: type %.4q, %d bytes, expected %q, and %d to %d", ErrBox, data[4:8], size, boxType, BoxHeaderSize, BoxHeaderSize+carriage.MaxFrameBytes)
	}
	return int(size) - BoxHeaderSize, nil
}

// ReadBox reads a box with a frame, into memory of its own. The error is io.EOF where the segment ends before it.
func ReadBox(r io.Reader) ([]byte, error) {
	var header [BoxHeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	length, err := ParseBoxHeader(header[:])
	if err != nil {
		return nil, err
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("%w: cut off: %w", ErrBox, err)
	}
	return data, nil
}
