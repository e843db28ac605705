package pointcloud

import (
	"errors"
	"io"
)

// Errors of PLY files. The wrapping error contains the value found and the value expected.
var (
	// ErrMalformed reports that a file is not a PLY file with points, or that the file ends too early.
	ErrMalformed = errors.New("malformed PLY")
	// ErrLimit reports that a file is well-formed as far as it was read, but exceeds the reader's
	// limits.
	ErrLimit = errors.New("PLY exceeds limit")
	// ErrFormat reports that the output format is unknown, or that the cloud to be written is
	// inconsistent.
	ErrFormat = errors.New("cannot write PLY")
)

// Format is the storage format of the points in a PLY file.
type Format uint8

// The formats of PLY 1.0. The zero value is the recommended format for writing.
const (
	BinaryLittleEndian Format = iota
	ASCII
	BinaryBigEndian
)

// String returns the format's name in the header of a file.
func (f Format) String() string {
	switch f {
	case BinaryLittleEndian:
		return "binary_little_endian"
	case ASCII:
		return "ascii"
	case BinaryBigEndian:
		return "binary_big_endian"
	default:
		return "unknown"
	}
}

// Config contains the limits for PLY files.
type Config struct {
	MaxPoints int `yaml:"max_points" help:"largest number of points that a PLY file may hold"`
}

// DefaultConfig accepts 20 million points: 300 MB as a Cloud, about seventy times the largest
// capture of one person.
func DefaultConfig() Config { return Config{MaxPoints: 20_000_000} }

// ReadPLY replaces the cloud's points by the points of a PLY 1.0 file in any of the three formats, within
// DefaultConfig.
//
// Positions are the properties x, y and z of the element "vertex", float or double. Colours are
// red, green and blue, or diffuse_red, diffuse_green and diffuse_blue: uchar, or float and double
// from 0 to 1. Points without colours are mid grey (128). Labels are an integer property label,
// classification or class; the cameras that saw a point are an integer property cameras or tile.
// Values that do not fit 16 bits count as 0. All other properties and elements are skipped. Points
// with a coordinate that is not finite are omitted: scanners write such points for pixels without
// depth. The reader may read beyond the end of the file in r. If the error, which wraps
// ErrMalformed, ErrLimit or an error of r, is not nil, the cloud is empty.
func ReadPLY(r io.Reader, into *Cloud) error {
	return NewPLYReader(DefaultConfig()).Read(r, into)
}
