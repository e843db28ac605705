package pointcloud

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
)

// plyVertexBytes is the size of one point in the files that WritePLY writes: three floats and three bytes.
const plyVertexBytes = 15

// writeBufferBytes is what is formatted between two writes.
const writeBufferBytes = 64 << 10

// WritePLY writes the cloud as a PLY 1.0 file of x, y, z (float, in metres) and red, green, blue (uchar), the layout that every viewer reads.
// In ASCII positions have as many digits as it takes to read the same float back. A cloud whose slices differ in length or an unknown
// format gives an error around ErrFormat; other errors are those of w.
func WritePLY(w io.Writer, c *Cloud, format Format) error {
	if len(c.Positions) != len(c.Colors) {
		return fmt.Errorf("%w: cloud has %d positions and %d colours, expected as many of both", ErrFormat, len(c.Positions), len(c.Colors))
	}
	if format.String() == "unknown" {
		return fmt.Errorf("%w: format is %d, expected %d to %d", ErrFormat, format, BinaryLittleEndian, BinaryBigEndian)
	}
	buf := make([]byte, 0, writeBufferBytes)
	buf = fmt.Appendf(buf, "ply\nformat %s 1.0\nelement vertex %d\nproperty float x\nproperty float y\nproperty float z\n"+
		"property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n", format, c.Len())
	// Three floats of at most 15 characters, three bytes of at most 3, six separators.
	const maxLineBytes = 3*15 + 3*3 + 6
	for i, p := range c.Positions {
		if len(buf)+maxLineBytes > cap(buf) {
			if _, err := w.Write(buf); err != nil {
				return fmt.Errorf("write PLY: %w", err)
			}
			buf = buf[:0]
		}
		if format == ASCII {
			buf = appendText(buf, p, c.Colors[i])
		} else {
			buf = appendBinary(buf, p, c.Colors[i], format)
		}
	}
	if _, err := w.Write(buf); err != nil {
		return fmt.Errorf("write PLY: %w", err)
	}
	return nil
}

func appendBinary(buf []byte, p [3]float32, color [3]uint8, format Format) []byte {
	for _, v := range p {
		if format == BinaryBigEndian {
			buf = binary.BigEndian.AppendUint32(buf, math.Float32bits(v))
		} else {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
	}
	return append(buf, color[0], color[1], color[2])
}

func appendText(buf []byte, p [3]float32, color [3]uint8) []byte {
	for _, v := range p {
		buf = append(strconv.AppendFloat(buf, float64(v), 'g', -1, 32), ' ')
	}
	for i, v := range color {
		end := byte(' ')
		if i == 2 {
			end = '\n'
		}
		buf = append(strconv.AppendUint(buf, uint64(v), 10), end)
	}
	return buf
}
