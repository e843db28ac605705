package pointcloud

import (
	"errors"
	"io"
)

// Errors of PLY files. They are wrapped with what was found and what was expected.
var (
	// ErrMalformed says that a file is not a PLY file with points, or that it ends too early.
	ErrMalformed = errors.New("malformed PLY")
	// ErrLimit says that a file is well-formed as far as it was read, but larger than the reader accepts.
	ErrLimit = errors.New("PLY exceeds limit")
	// ErrFormat says that a cloud was asked to be written in a format that does not exist, or is not a proper cloud.
	ErrFormat = errors.New("cannot write PLY")
)

// Format says how the points of a PLY file are stored.
type Format uint8

// The formats of PLY 1.0. The zero value is the one to write unless there is a reason for another.
const (
	BinaryLittleEndian Format = iota
	ASCII
	BinaryBigEndian
)

// String is the name that the file's header uses.
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

// Config limits what a PLY file may ask for.
type Config struct {
	MaxPoints int `yaml:"max_points" help:"largest number of points that a PLY file may hold"`
}

// DefaultConfig accepts 20 million points: 300 MB as a Cloud, some seventy times the largest capture of one person.
func DefaultConfig() Config { return Config{MaxPoints: 20_000_000} }

// ReadPLY replaces the cloud's points by those of a PLY 1.0 file in any of its three formats, within DefaultConfig.
//
// Positions are the properties x, y and z of the element "vertex", float or double. Colours are red, green and blue, or diffuse_red,
// diffuse_green and diffuse_blue, either uchar or float and double from 0 to 1; points without colours are mid grey (128).
// Labels are an integer property label, classification or class, the cameras that saw a point an integer property cameras or tile; values that
// do not fit 16 bits count as 0. Every other property and element is skipped. Points with a coordinate that is not finite are left out: scanners write them for pixels
// without depth. The reader may take more from r than the file's own bytes. After an error, around ErrMalformed, ErrLimit or r's own,
// the cloud is empty.
func ReadPLY(r io.Reader, into *Cloud) error {
	return NewPLYReader(DefaultConfig()).Read(r, into)
}
