package vr2gather

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrFrame reports a frame without a valid header.
var ErrFrame = errors.New("malformed VR2Gather frame")

// FrameHeaderSize is the size in bytes of the header of every frame, of point clouds and of audio.
const FrameHeaderSize = 16

// The codecs of VR2Gather.
var (
	// CodecRawPoints is an uncompressed point cloud.
	CodecRawPoints = volumetric.FourCC{'c', 'w', 'i', '0'}
	// CodecOctree is a point cloud as an octree with JPEG colours, the default of VR2Gather.
	CodecOctree = volumetric.FourCC{'c', 'w', 'i', '1'}
	// CodecVoice is audio: Speex wideband at quality 5, one channel with 48,000 samples per second
	// although Speex expects 16,000. A frame contains 20 ms in three Speex frames of 42 bytes, and
	// its capture time is the time of its last sample.
	CodecVoice = volumetric.FourCC{'V', 'R', '2', 'A'}
	// CodecRawVoice is the same audio without compression, as 32-bit floating-point numbers (IEEE
	// 754), little-endian, between -1 and 1.
	CodecRawVoice = volumetric.FourCC{'V', 'R', '2', 'a'}
)

// FrameHeader is the header at the start of a frame. The packets of one frame number carry this
// header and the codec's data. On the wire the header is
//
//	offset  size  content
//	0       4     codec, its four characters in reverse order ("cwi1" is 31 69 77 63)
//	4       4     length of the data after the header, signed
//	8       8     capture time in milliseconds since 1970, UTC, signed
type FrameHeader struct {
	// FourCC identifies the codec, in reading order.
	FourCC [4]byte
	// Length is the number of bytes of the codec's data, without the header.
	Length uint32
	// TimestampMS is the capture time in milliseconds since 1970, UTC; 0 if unknown.
	TimestampMS uint64
}

// NewFrameHeader returns the header of a frame with length bytes of codec data. A zero capture time
// means unknown.
func NewFrameHeader(fourCC volumetric.FourCC, length int, capture time.Time) FrameHeader {
	h := FrameHeader{FourCC: fourCC, Length: uint32(length)}
	if !capture.IsZero() {
		h.TimestampMS = uint64(max(0, capture.UnixMilli()))
	}
	return h
}

// Append appends the header to dst.
func (h FrameHeader) Append(dst []byte) []byte {
	dst = append(dst, h.FourCC[3], h.FourCC[2], h.FourCC[1], h.FourCC[0])
	dst = binary.LittleEndian.AppendUint32(dst, h.Length)
	return binary.LittleEndian.AppendUint64(dst, h.TimestampMS)
}

// Parse parses the header of a frame and returns the codec's data after it, with the length from
// the header. The error wraps ErrFrame if the frame is shorter than its header announces, or if the
// length or the time is negative.
func (h *FrameHeader) Parse(frame []byte) (data []byte, err error) {
	parsed, err := ParseFrameHeader(frame)
	if err != nil {
		return nil, err
	}
	if data = frame[FrameHeaderSize:]; uint64(parsed.Length) > uint64(len(data)) {
		return nil, fmt.Errorf("%w: header announces %d bytes, %d follow", ErrFrame, parsed.Length, len(data))
	}
	*h = parsed
	return data[:parsed.Length], nil
}

// ParseFrameHeader parses only the header, without the data after it, for example the first packet
// of a frame for its capture time. Errors wrap ErrFrame.
func ParseFrameHeader(begin []byte) (FrameHeader, error) {
	if len(begin) < FrameHeaderSize {
		return FrameHeader{}, fmt.Errorf("%w: %d bytes, expected at least %d", ErrFrame, len(begin), FrameHeaderSize)
	}
	h := FrameHeader{
		FourCC:      [4]byte{begin[3], begin[2], begin[1], begin[0]},
		Length:      binary.LittleEndian.Uint32(begin[4:]),
		TimestampMS: binary.LittleEndian.Uint64(begin[8:]),
	}
	if h.Length > math.MaxInt32 || h.TimestampMS > math.MaxInt64 {
		return FrameHeader{}, fmt.Errorf(
			"%w: length is %d and time %d ms, expected 0 or more for both",
			ErrFrame,
			int32(h.Length),
			int64(h.TimestampMS),
		)
	}
	return h, nil
}

// Capture returns the capture time, UTC, exact to the millisecond, or the zero time if it is
// unknown.
func (h FrameHeader) Capture() time.Time {
	if h.TimestampMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(h.TimestampMS)).UTC()
}
