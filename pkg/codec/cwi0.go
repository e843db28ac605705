package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// CWI0 is the codec "cwi0" (FourCC "cwi0"): VR2Gather's uncompressed point clouds with 16 bytes per point. CWI0 needs
// no cgo and little time, and ignores Params.Speed and Sequential. Without colours, points are white. Positions are
// written as they are on the grid of Params, so that qualities and tiles coincide as with every other codec. A frame is
// a packet of CWI's point cloud library. All numbers are little-endian:
//
//	offset  size       content
//	0       4          "cpcd"
//	4       4          version of the format, 0x20210208
//	8       8          capture time in milliseconds since 1970, 0 if unknown; see StampCWI0
//	16      4          size of a point in metres, float32, 0 if unknown
//	20      4          ignored
//	24      8          number of bytes that follow
//	32      16·points  x, y, z, float32 in metres; red, green, blue; mask of the first eight cameras
//	                   that saw the point, 0 if unknown
//
// Nothing follows. The decoder omits points of foreign frames whose position is infinite or not a
// number.
var CWI0 Codec = cwi0{}

func init() { Register(CWI0) }

const (
	// cwi0HeaderBytes is the size of the header, cwi0PointBytes the size of a point.
	cwi0HeaderBytes = 32
	cwi0PointBytes  = 16
	// cwi0Magic and cwi0Version are at the start of every frame.
	cwi0Magic   = "cpcd"
	cwi0Version = 0x20210208
	// cwi0TimeOffset is the offset of the capture time.
	cwi0TimeOffset = 8
)

type cwi0 struct{}

func (cwi0) FourCC() FourCC { return FourCC{'c', 'w', 'i', '0'} }
func (cwi0) Name() string   { return "cwi0" }
func (cwi0) Capabilities() Capabilities {
	return Capabilities{Encodes: true, Colors: true, ExactColors: true, Steps: []int{0}, MaxPoints: MaxPoints}
}
func (cwi0) NewEncoder() Encoder { return cwi0Encoder{} }
func (cwi0) NewDecoder() Decoder { return cwi0Decoder{} }

// StampCWI0 appends an encoder's frame to dst with its capture time, UTC, in the form that
// VR2Gather expects. The zero time means unknown. If data is empty, StampCWI0 appends a whole frame
// without points, because VR2Gather's decoder, unlike the decoder of this package, does not accept
// a frame of length 0. Data that does not start as a frame is appended unchanged.
func StampCWI0(dst, data []byte, capture time.Time) []byte {
	begin := len(dst)
	if len(data) == 0 {
		dst = appendCWI0Header(dst, 0)
	} else {
		dst = append(dst, data...)
	}
	if frame := dst[begin:]; len(frame) >= cwi0HeaderBytes && string(frame[:4]) == cwi0Magic && !capture.IsZero() {
		binary.LittleEndian.PutUint64(frame[cwi0TimeOffset:], uint64(max(0, capture.UnixMilli())))
	}
	return dst
}

// appendCWI0Header appends the header of a frame with the given number of points, without capture
// time and point size.
func appendCWI0Header(dst []byte, points int) []byte {
	dst = append(dst, cwi0Magic...)
	dst = binary.LittleEndian.AppendUint32(dst, cwi0Version)
	dst = append(dst, make([]byte, 16)...)
	return binary.LittleEndian.AppendUint64(dst, uint64(points)*cwi0PointBytes)
}

type cwi0Encoder struct{}

// Encode appends the cloud's frame to dst.
func (cwi0Encoder) Encode(dst []byte, cloud *pointcloud.Cloud, params Params) ([]byte, error) {
	if err := params.Check(cloud, MaxPoints); err != nil {
		return dst, fmt.Errorf("encode cwi0: %w", err)
	}
	n := cloud.Len()
	if n == 0 {
		return dst, nil
	}
	dst = appendCWI0Header(slices.Grow(dst, cwi0HeaderBytes+n*cwi0PointBytes), n)
	grid := params.Grid()
	for i, p := range cloud.Positions {
		for _, v := range grid.Position(grid.Steps(p)) {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
		color := White
		if !params.NoColors {
			color = cloud.Colors[i]
		}
		cameras := uint8(0)
		if len(cloud.Sources) > 0 {
			cameras = uint8(cloud.Sources[i])
		}
		dst = append(dst, color[0], color[1], color[2], cameras)
	}
	return dst, nil
}

type cwi0Decoder struct{}

// Announced implements Announcer.
func (cwi0Decoder) Announced(data []byte) (int, error) {
	if err := checkCWI0(data); err != nil {
		return 0, fmt.Errorf("decode cwi0: %w", err)
	}
	return (len(data) - cwi0HeaderBytes) / cwi0PointBytes, nil
}

// Decode replaces the cloud's points by the frame's.
func (cwi0Decoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := checkCWI0(data); err != nil {
		return fmt.Errorf("decode cwi0: %w", err)
	}
	points := data[cwi0HeaderBytes:]
	n := len(points) / cwi0PointBytes
	cloud.Positions = slices.Grow(cloud.Positions, n)
	cloud.Colors = slices.Grow(cloud.Colors, n)
	seen := uint8(0)
	for ; len(points) > 0; points = points[cwi0PointBytes:] {
		var position [3]float32
		placed := true
		for axis := range position {
			v := math.Float32frombits(binary.LittleEndian.Uint32(points[4*axis:]))
			position[axis] = v
			// The difference v-v is not 0 if v is infinite or not a number.
			placed = placed && v-v == 0
		}
		if placed {
			seen |= points[15]
			cloud.Positions = append(cloud.Positions, position)
			cloud.Colors = append(cloud.Colors, [3]uint8(points[12:15]))
			cloud.Sources = append(cloud.Sources, uint16(points[15]))
		}
	}
	if seen == 0 {
		cloud.Sources = cloud.Sources[:0]
	}
	return nil
}

// checkCWI0 checks the header and the length of the frame.
func checkCWI0(data []byte) error {
	if len(data) < cwi0HeaderBytes {
		return fmt.Errorf("%w: frame has %d bytes, expected at least %d", ErrMalformed, len(data), cwi0HeaderBytes)
	}
	size, follow := binary.LittleEndian.Uint64(data[24:]), len(data)-cwi0HeaderBytes
	switch version := binary.LittleEndian.Uint32(data[4:]); {
	case string(data[:4]) != cwi0Magic || version != cwi0Version:
		return fmt.Errorf(
			"%w: frame begins with %q, version %#x, expected %q, version %#x",
			ErrMalformed,
			data[:4],
			version,
			cwi0Magic,
			cwi0Version,
		)
	case size != uint64(follow):
		return fmt.Errorf("%w: header announces %d bytes of points, %d follow", ErrMalformed, size, follow)
	case size%cwi0PointBytes != 0:
		return fmt.Errorf("%w: %d bytes of points, expected %d for each", ErrMalformed, size, cwi0PointBytes)
	case size/cwi0PointBytes > MaxPoints:
		return fmt.Errorf("%w: %d points, expected at most %d", ErrMalformed, size/cwi0PointBytes, MaxPoints)
	}
	return nil
}
