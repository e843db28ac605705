// Package direct is VR2Gather's Direct TCP: the watching peer opens a connection for each tile to the publishing peer,
// and receives the frames of one quality of the tile. VR2Gather's header of 16 bytes precedes each frame. To switch the
// quality, the watching peer closes the connection and opens a connection for the other quality.
//
// In VR2Gather each stream has its own port. Here a request of eight bytes names the stream, so that all streams share
// a port. The request is sent with the acknowledgement that completes the handshake and causes no additional delay.
package direct

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Errors of the wire format. The wrapping error has the invalid data.
var (
	ErrRequest = errors.New("malformed request")
	ErrFrame   = errors.New("malformed frame")
)

// RequestSize is the size of a request, in bytes.
const RequestSize = 8

// requestMagic begins a request.
var requestMagic = [4]byte{'v', 'r', 'e', 'q'}

// AppendRequest appends a request: magic, tile u16, quality u8, 0 u8, in network byte order.
func AppendRequest(dst []byte, stream carriage.Job) []byte {
	dst = append(dst, requestMagic[:]...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(stream.Tile))
	return append(dst, byte(stream.Quality), 0)
}

// ParseRequest parses a request. Errors wrap ErrRequest.
func ParseRequest(data []byte) (carriage.Job, error) {
	if len(data) != RequestSize || [4]byte(data) != requestMagic || data[7] != 0 {
		return carriage.Job{}, fmt.Errorf("%w: % x", ErrRequest, data[:min(len(data), RequestSize)])
	}
	job := carriage.Job{Tile: int(binary.BigEndian.Uint16(data[4:])), Quality: volumetric.Quality(data[6])}
	if job.Tile >= volumetric.MaxTiles || job.Quality >= volumetric.MaxQualities {
		return job, fmt.Errorf("%w: tile %d, quality %d", ErrRequest, job.Tile, job.Quality)
	}
	return job, nil
}

// codecName is the codec name in the header: the frame's envelope names the actual codec.
var codecName = volumetric.FourCC{'l', 'a', 'b', '1'}

// AppendHeader appends the header of a frame of length bytes.
func AppendHeader(dst []byte, length int, capture time.Time) []byte {
	return vr2gather.NewFrameHeader(codecName, length, capture).Append(dst)
}

// ReadFrame reads a header and its frame into new memory. Errors wrap ErrFrame or are errors of the reader.
func ReadFrame(r io.Reader) ([]byte, error) {
	var begin [vr2gather.FrameHeaderSize]byte
	if _, err := io.ReadFull(r, begin[:]); err != nil {
		return nil, err
	}
	header, err := vr2gather.ParseFrameHeader(begin[:])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	if header.FourCC != codecName || header.Length > carriage.MaxFrameBytes {
		return nil, fmt.Errorf("%w: codec %q, %d bytes, expected %q and at most %d", ErrFrame, header.FourCC,
			header.Length, codecName, carriage.MaxFrameBytes)
	}
	data := make([]byte, header.Length)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("%w: cut off: %w", ErrFrame, err)
	}
	return data, nil
}
