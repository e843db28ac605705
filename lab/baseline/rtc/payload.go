// Package rtc carries frames over a peer connection of Pion with Pion's own congestion control (GCC with its pacer) and
// repair, as the systems of papers 000 and 001 do: an estimate between 12.5 and 90 Mbit/s, one request for each lost
// packet, and a buffer of 1,024 packets for retransmission. The payload is that of the one-to-many system of the same
// group.
package rtc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/lab/carriage"
)

// Sizes of payloads, in bytes. A packet has 1,196 bytes, and 1,252 with the headers of RTP, its extension, the tag of
// SRTP, UDP and IPv4.
const (
	HeaderSize = 16
	ChunkSize  = 1180
)

// ErrPayload reports an invalid payload. The wrapping error describes it.
var ErrPayload = errors.New("malformed payload")

// Header begins every payload: four numbers of 32 bits, little-endian.
type Header struct {
	// Frame is the frame number, Length the size of the frame, Offset the position of the payload's bytes, Size the
	// number of these bytes.
	Frame, Length, Offset, Size uint32
}

// AppendPayload appends the payload with the bytes of a frame from offset on.
func AppendPayload(dst []byte, number uint32, frame []byte, offset int) []byte {
	chunk := frame[offset:min(offset+ChunkSize, len(frame))]
	for _, field := range []uint32{number, uint32(len(frame)), uint32(offset), uint32(len(chunk))} {
		dst = binary.LittleEndian.AppendUint32(dst, field)
	}
	return append(dst, chunk...)
}

// Parse parses a payload. chunk is a part of data. Errors wrap ErrPayload.
func Parse(data []byte) (h Header, chunk []byte, err error) {
	if len(data) < HeaderSize {
		return h, nil, fmt.Errorf("%w: %d bytes, expected at least %d", ErrPayload, len(data), HeaderSize)
	}
	h = Header{binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]),
		binary.LittleEndian.Uint32(data[8:]), binary.LittleEndian.Uint32(data[12:])}
	chunk = data[HeaderSize:]
	switch {
	case h.Length == 0 || h.Length > carriage.MaxFrameBytes:
		return h, nil, fmt.Errorf("%w: a frame of %d bytes, expected 1 to %d", ErrPayload, h.Length,
			carriage.MaxFrameBytes)
	case int64(h.Size) != int64(len(chunk)) || h.Offset%ChunkSize != 0 ||
		int64(h.Offset)+int64(h.Size) > int64(h.Length):
		return h, nil, fmt.Errorf("%w: bytes %d to %d of %d in a payload with %d", ErrPayload, h.Offset,
			int64(h.Offset)+int64(h.Size), h.Length, len(chunk))
	case h.Size != min(ChunkSize, h.Length-h.Offset):
		return h, nil, fmt.Errorf("%w: %d bytes at %d of %d, expected %d", ErrPayload, h.Size, h.Offset, h.Length,
			min(ChunkSize, h.Length-h.Offset))
	}
	return h, chunk, nil
}
