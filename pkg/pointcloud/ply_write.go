package pointcloud

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
)

// writeBufferBytes is the number of bytes formatted per write.
const writeBufferBytes = 64 << 10

// WritePLY writes the cloud as a PLY 1.0 file of x, y, z (float, in metres) and red, green, blue (uchar), the layout
// that every viewer reads, and of label and cameras (ushort) if present in the cloud. ASCII positions have enough
// digits to restore the same float. The error wraps ErrFormat if the slices of the cloud differ in length or the format
// is unknown; other errors are errors of w.
func WritePLY(w io.Writer, c *Cloud, format Format) error {
	if err := checkWritable(c, format); err != nil {
		return err
	}
	buf := make([]byte, 0, writeBufferBytes)
	buf = appendHeader(buf, c, format)
	// Three floats of at most 15 characters, three bytes of at most 3, two numbers of at most 5,
	// eight separators.
	const maxLineBytes = 3*15 + 3*3 + 2*5 + 8
	for i := range c.Positions {
		if len(buf)+maxLineBytes > cap(buf) {
			if _, err := w.Write(buf); err != nil {
				return fmt.Errorf("write PLY: %w", err)
			}
			buf = buf[:0]
		}
		if format == ASCII {
			buf = appendText(buf, c, i)
		} else {
			buf = appendBinary(buf, c, i, format)
		}
	}
	if _, err := w.Write(buf); err != nil {
		return fmt.Errorf("write PLY: %w", err)
	}
	return nil
}

// checkWritable returns an error if the cloud is inconsistent or the format is unknown.
func checkWritable(c *Cloud, format Format) error {
	if len(c.Positions) != len(c.Colors) {
		return fmt.Errorf(
			"%w: cloud has %d positions and %d colours, expected equal numbers",
			ErrFormat,
			len(c.Positions),
			len(c.Colors),
		)
	}
	for name, n := range map[string]int{"labels": len(c.Labels), "sources": len(c.Sources)} {
		if n != 0 && n != c.Len() {
			return fmt.Errorf(
				"%w: cloud has %d points and %d %s, expected equal numbers, or none",
				ErrFormat,
				c.Len(),
				n,
				name,
			)
		}
	}
	if format > BinaryBigEndian {
		return fmt.Errorf("%w: format is %d, expected %d to %d", ErrFormat, format, BinaryLittleEndian, BinaryBigEndian)
	}
	return nil
}

func appendHeader(buf []byte, c *Cloud, format Format) []byte {
	buf = fmt.Appendf(
		buf,
		"ply\nformat %s 1.0\nelement vertex %d\nproperty float x\nproperty float y\nproperty float z\n"+
			"property uchar red\nproperty uchar green\nproperty uchar blue\n",
		format,
		c.Len(),
	)
	if len(c.Labels) > 0 {
		buf = fmt.Appendf(buf, "property ushort %s\n", labelNames[len(labelNames)-1])
	}
	if len(c.Sources) > 0 {
		buf = fmt.Appendf(buf, "property ushort %s\n", sourceNames[len(sourceNames)-1])
	}
	return append(buf, "end_header\n"...)
}

func appendBinary(buf []byte, c *Cloud, i int, format Format) []byte {
	var order binary.AppendByteOrder = binary.LittleEndian
	if format == BinaryBigEndian {
		order = binary.BigEndian
	}
	for _, v := range c.Positions[i] {
		buf = order.AppendUint32(buf, math.Float32bits(v))
	}
	color := c.Colors[i]
	buf = append(buf, color[0], color[1], color[2])
	if len(c.Labels) > 0 {
		buf = order.AppendUint16(buf, c.Labels[i])
	}
	if len(c.Sources) > 0 {
		buf = order.AppendUint16(buf, c.Sources[i])
	}
	return buf
}

func appendText(buf []byte, c *Cloud, i int) []byte {
	for _, v := range c.Positions[i] {
		buf = append(strconv.AppendFloat(buf, float64(v), 'g', -1, 32), ' ')
	}
	for _, v := range c.Colors[i] {
		buf = append(strconv.AppendUint(buf, uint64(v), 10), ' ')
	}
	if len(c.Labels) > 0 {
		buf = append(strconv.AppendUint(buf, uint64(c.Labels[i]), 10), ' ')
	}
	if len(c.Sources) > 0 {
		buf = append(strconv.AppendUint(buf, uint64(c.Sources[i]), 10), ' ')
	}
	buf[len(buf)-1] = '\n'
	return buf
}
