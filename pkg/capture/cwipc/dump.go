package cwipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ErrDump reports bytes that are no dump. The wrapping error has the reason.
var ErrDump = errors.New("invalid cwipc dump")

const (
	magic   = "cpcd"
	version = 0x20210208

	headerBytes = 32
	pointBytes  = 16
	// chunkPoints is the number of points that are read at once. The memory of a cloud grows with the points that
	// arrived, whatever the header announces.
	chunkPoints = 4096
	// maxPoints is the maximum number of points of a dump, 1 GiB.
	maxPoints = 1 << 26
)

// Header is the header of a dump.
type Header struct {
	// Milliseconds is the capture time in milliseconds of a clock of the writer, usually since 1970.
	Milliseconds uint64
	// CellSize is the edge of the cube that a point stands for, in metres; 0 if unknown.
	CellSize float64
	// Points is the number of points that the header announces.
	Points int
}

// ReadHeader reads the header of a dump. Errors wrap ErrDump, or are those of the source.
func ReadHeader(source io.Reader) (Header, error) {
	var data [headerBytes]byte
	if n, err := io.ReadFull(source, data[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Header{}, fmt.Errorf("%w: %d bytes, expected a header of %d", ErrDump, n, headerBytes)
		}
		return Header{}, err
	}
	if string(data[:4]) != magic {
		return Header{}, fmt.Errorf("%w: begins with %q, expected %q", ErrDump, data[:4], magic)
	}
	if got := binary.LittleEndian.Uint32(data[4:]); got != version {
		return Header{}, fmt.Errorf("%w: version is %#x, expected %#x", ErrDump, got, version)
	}
	h := Header{
		Milliseconds: binary.LittleEndian.Uint64(data[8:]),
		CellSize:     float64(math.Float32frombits(binary.LittleEndian.Uint32(data[16:]))),
	}
	if !(h.CellSize >= 0 && h.CellSize <= math.MaxFloat32) {
		return Header{}, fmt.Errorf("%w: size of a cell is %g m, expected 0 or more", ErrDump, h.CellSize)
	}
	size := binary.LittleEndian.Uint64(data[24:])
	if size%pointBytes != 0 || size/pointBytes > maxPoints {
		return Header{}, fmt.Errorf("%w: points have %d bytes, expected a multiple of %d up to %d points", ErrDump,
			size, pointBytes, maxPoints)
	}
	h.Points = int(size / pointBytes)
	return h, nil
}

// Read replaces the points of a cloud by those of a dump. Points with a coordinate that is not finite are omitted. On
// error the cloud is empty. Errors wrap ErrDump, or are those of the source.
func Read(source io.Reader, into *pointcloud.Cloud) (Header, error) {
	into.Reset()
	h, err := ReadHeader(source)
	if err != nil {
		return Header{}, err
	}
	chunk := make([]byte, min(h.Points, chunkPoints)*pointBytes)
	for read := 0; read < h.Points; {
		data := chunk[:min(h.Points-read, chunkPoints)*pointBytes]
		n, err := io.ReadFull(source, data)
		if err != nil {
			into.Reset()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return Header{}, fmt.Errorf("%w: ends after %d of %d points", ErrDump, read+n/pointBytes, h.Points)
			}
			return Header{}, err
		}
		appendPoints(into, data)
		read += len(data) / pointBytes
	}
	return h, nil
}

func appendPoints(into *pointcloud.Cloud, data []byte) {
	n := len(data) / pointBytes
	into.Positions, into.Colors = slices.Grow(into.Positions, n), slices.Grow(into.Colors, n)
	into.Labels, into.Sources = slices.Grow(into.Labels, n), slices.Grow(into.Sources, n)
	for ; len(data) > 0; data = data[pointBytes:] {
		var at [3]float32
		finite := true
		for axis := range at {
			at[axis] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*axis:]))
			finite = finite && at[axis]-at[axis] == 0
		}
		if !finite {
			continue
		}
		tile := uint16(data[15])
		into.Positions = append(into.Positions, at)
		into.Colors = append(into.Colors, [3]uint8(data[12:15]))
		into.Labels, into.Sources = append(into.Labels, tile), append(into.Sources, tile)
	}
}
