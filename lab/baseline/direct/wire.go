// Package direct is VR2Gather's Direct TCP: whoever watches opens a connection for each tile to whoever publishes, and gets the frames of one quality
// of it, each behind VR2Gather's header of 16 bytes. Another quality takes another connection: the one that there is gets closed, and one for the
// other quality opened.
//
// In VR2Gather each stream has a port of its own. Here a request of eight bytes names the stream: it leaves with the acknowledgement that completes
// the handshake, so it takes no time, and all streams share a port.
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

// Errors of the wire form. They are wrapped with what was found.
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

// ParseRequest reads a request. Errors wrap ErrRequest.
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

// codecName is the codec of what follows a header: a frame with its envelope, which names the codec itself.
var codecName = volumetric.FourCC{'l', 'a', 'b', '1'}

// AppendHeader appends the header of a frame of so many bytes.
func AppendHeader(dst []byte, length int, capture time.Time) []byte {
	return vr2gather.NewFrameHeader(codecName, length, capture).Append(dst)
}

// ReadFrame reads a frame behind its header, into memory of its own. Errors wrap ErrFrame, or are the reader's.
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
		return nil, fmt.Errorf("%w: codec %q, %d bytes, expected %q and at most %d", ErrFrame, header.FourCC, header.Length, codecName, carriage.MaxFrameBytes)
	}
	data := make([]byte, header.Length)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("%w: cut off: %w", ErrFrame, err)
	}
	return data, nil
}
