package vr2gather

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrFrame says that a frame does not begin with a header that fits it.
var ErrFrame = errors.New("malformed VR2Gather frame")

// FrameHeaderSize is the size in bytes of the header that begins every frame, of point clouds and of sound.
const FrameHeaderSize = 16

// The codecs that VR2Gather knows.
var (
	// CodecRawPoints is an uncompressed point cloud.
	CodecRawPoints = volumetric.FourCC{'c', 'w', 'i', '0'}
	// CodecOctree is a point cloud as an octree with JPEG colours, VR2Gather's default.
	CodecOctree = volumetric.FourCC{'c', 'w', 'i', '1'}
	// CodecVoice is sound: Speex, wideband at quality 5, of one channel with 48,000 samples per second where Speex expects 16,000. A frame has 20 ms in three
	// frames of Speex's of 42 bytes, and its time is that of its last sample.
	CodecVoice = volumetric.FourCC{'V', 'R', '2', 'A'}
	// CodecRawVoice is the same sound without compression, as numbers of 32 bits (IEEE 754), little-endian, between -1 and 1.
	CodecRawVoice = volumetric.FourCC{'V', 'R', '2', 'a'}
)

// FrameHeader begins a frame: what is carried by the packets of one frame number is this header and the codec's data. On the wire it is
//
//	offset  size  what
//	0       4     codec, its four characters in reverse order ("cwi1" is 31 69 77 63)
//	4       4     length of the data behind the header, a signed number
//	8       8     capture time in milliseconds since 1970, UTC, a signed number
type FrameHeader struct {
	// FourCC names the codec, in reading order.
	FourCC [4]byte
	// Length is the number of bytes of the codec's data, without the header.
	Length uint32
	// TimestampMS is the capture time in milliseconds since 1970, UTC; 0 where it is not known.
	TimestampMS uint64
}

// NewFrameHeader makes the header of a frame with so many bytes of codec data, captured at that time; the zero time is not known.
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

// Parse reads the header of a frame and returns the codec's data behind it, as long as the header says. Errors wrap ErrFrame: fewer bytes than the
// header has or announces, a length or a time below 0.
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

// ParseFrameHeader reads the header alone, where the data behind it has not come yet: of a frame's first packet, for its capture time.
// Errors wrap ErrFrame.
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
		return FrameHeader{}, fmt.Errorf("%w: length is %d and time %d ms, expected neither below 0", ErrFrame, int32(h.Length), int64(h.TimestampMS))
	}
	return h, nil
}

// Capture is the capture time, UTC, exact to the millisecond; the zero time where it is not known.
func (h FrameHeader) Capture() time.Time {
	if h.TimestampMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(h.TimestampMS)).UTC()
}
