// Package segments is a transport like low-latency DASH: each tile at each quality is a sequence of segments. The
// publisher uploads a segment over HTTP, with chunked transfer, while its frames are produced. The watching peer
// downloads the segments at the same time, one after the other. Another quality begins with the next segment. The
// server keeps the latest segments.
package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/volsfu/volsfu/lab/carriage"
)

// BoxHeaderSize is the size of a box's header, in bytes. The header has the size of the box including the header, and
// the type of the box, as in ISO base media files (ISO/IEC 14496-12 section 4.2).
const BoxHeaderSize = 8

// boxType is the type of a box with a frame.
var boxType = [4]byte{'m', 'd', 'a', 't'}

// ErrBox reports an invalid box. The wrapping error describes it.
var ErrBox = errors.New("malformed box")

// AppendBoxHeader appends the header of a box with a frame of length bytes.
func AppendBoxHeader(dst []byte, length int) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(BoxHeaderSize+length)), boxType[:]...)
}

// ParseBoxHeader parses the header of a box and returns the length of its frame. Errors wrap ErrBox.
func ParseBoxHeader(data []byte) (length int, err error) {
	if len(data) < BoxHeaderSize {
		return 0, fmt.Errorf("%w: %d bytes, expected at least %d", ErrBox, len(data), BoxHeaderSize)
	}
	size := binary.BigEndian.Uint32(data)
	if [4]byte(data[4:]) != boxType || size < BoxHeaderSize || size > BoxHeaderSize+carriage.MaxFrameBytes {
		return 0, fmt.Errorf("%w: type %.4q, %d bytes, expected %q, and %d to %d", ErrBox, data[4:8], size, boxType,
			BoxHeaderSize, BoxHeaderSize+carriage.MaxFrameBytes)
	}
	return int(size) - BoxHeaderSize, nil
}

// ReadBox reads a box with a frame into new memory. The error is io.EOF if the segment ends before the box.
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
