package journal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// magic is at the start of a journal; the last character is the version.
const magic = "VOLJRNL1"

// The kinds of records.
var (
	kindHead  = [4]byte{'h', 'e', 'a', 'd'}
	kindFrame = [4]byte{'f', 'r', 'a', 'm'}
	kindTile  = [4]byte{'t', 'i', 'l', 'e'}
)

// Sizes in bytes, and limits. All integers are little-endian.
const (
	recordSize = 12 // kind, length of the payload u32, CRC-32C u32 of kind, length and payload
	// four i64: number, capture time in nanoseconds since 1970, capture time and record time in
	// nanoseconds since the first capture
	timesSize  = 32
	tileSize   = 8       // tile u16, quality u8, 0, codec
	maxPayload = 1 << 30 // 71 million points
	maxHead    = 1 << 20

	flagLabels  = 1
	flagSources = 2
	flagColors  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// times is at the start of every record except the head.
type times struct {
	number            int64
	wall              int64 // nanoseconds since 1970
	captured, written int64 // nanoseconds since the first capture
}

func (t times) append(dst []byte) []byte {
	for _, v := range [4]int64{t.number, t.wall, t.captured, t.written} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}

func parseTimes(data []byte) times {
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(data[8*i:])) }
	return times{at(0), at(1), at(2), at(3)}
}

// appendRecord starts a record; finish completes its header.
func appendRecord(dst []byte, kind [4]byte) []byte {
	dst = append(dst, kind[:]...)
	return append(dst, make([]byte, recordSize-len(kind))...)
}

func finish(record []byte) error {
	length := len(record) - recordSize
	if length > maxPayload {
		return fmt.Errorf("%w: a frame of %d bytes, expected at most %d", ErrJournal, length, maxPayload)
	}
	binary.LittleEndian.PutUint32(record[4:], uint32(length))
	binary.LittleEndian.PutUint32(record[8:], checksum(record[:8], record[recordSize:]))
	return nil
}

func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, header), castagnoli, payload)
}

// appendFrame appends a frame: flags u32 and points u32, then positions, colours, and labels and
// sources if flagged, each for all points; images u32, and for each image flags u32 and pixels u32,
// then depths, and colours and labels if flagged.
func appendFrame(dst []byte, f *Frame) []byte {
	c := &f.Cloud
	flags := uint32(0)
	if len(c.Labels) > 0 {
		flags |= flagLabels
	}
	if len(c.Sources) > 0 {
		flags |= flagSources
	}
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(c.Len()))
	dst = slices.Grow(dst, 15*c.Len())
	for _, p := range c.Positions {
		for _, v := range p {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	dst = appendColors(dst, c.Colors)
	dst = appendShorts(dst, c.Labels)
	dst = appendShorts(dst, c.Sources)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(f.Images)))
	for i := range f.Images {
		m := &f.Images[i]
		flags := uint32(0)
		if len(m.Labels) > 0 {
			flags |= flagLabels
		}
		if len(m.Colors) > 0 {
			flags |= flagColors
		}
		dst = binary.LittleEndian.AppendUint32(dst, flags)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(m.Depth)))
		dst = appendShorts(dst, m.Depth)
		dst = appendColors(dst, m.Colors)
		dst = appendShorts(dst, m.Labels)
	}
	return dst
}

func appendColors(dst []byte, colors [][3]uint8) []byte {
	dst = slices.Grow(dst, 3*len(colors))
	for i := range colors {
		dst = append(dst, colors[i][:]...)
	}
	return dst
}

func appendShorts(dst []byte, values []uint16) []byte {
	dst = slices.Grow(dst, 2*len(values))
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint16(dst, v)
	}
	return dst
}

// parser splits a payload into its parts. After missing data it returns nothing.
type parser struct {
	rest      []byte
	truncated bool
}

func (t *parser) bytes(n, size int) []byte {
	if t.truncated || n > len(t.rest)/size {
		t.truncated = true
		return nil
	}
	cut := t.rest[:n*size]
	t.rest = t.rest[n*size:]
	return cut
}

func (t *parser) number() int {
	if data := t.bytes(1, 4); data != nil {
		return int(binary.LittleEndian.Uint32(data))
	}
	return 0
}

func (t *parser) colors(into [][3]uint8, n int) [][3]uint8 {
	data := t.bytes(n, 3)
	into = slices.Grow(into[:0], len(data)/3)[:len(data)/3]
	for i := range into {
		into[i] = [3]uint8(data[3*i:])
	}
	return into
}

func (t *parser) shorts(into []uint16, n int) []uint16 {
	data := t.bytes(n, 2)
	into = slices.Grow(into[:0], len(data)/2)[:len(data)/2]
	for i := range into {
		into[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	return into
}

// parseFrame parses the output of appendFrame. Coordinates that are not finite are an error,
// because no box contains them.
func parseFrame(data []byte, f *Frame) error {
	t := parser{rest: data}
	flags, points := t.number(), t.number()
	positions := t.bytes(points, 12)
	f.Cloud.Positions = slices.Grow(f.Cloud.Positions[:0], len(positions)/12)[:len(positions)/12]
	for i := range f.Cloud.Positions {
		for axis := range 3 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(positions[12*i+4*axis:]))
			if math.Abs(float64(v)) > math.MaxFloat32 || v != v {
				return fmt.Errorf("%w: point %d is at %g", ErrJournal, i, v)
			}
			f.Cloud.Positions[i][axis] = v
		}
	}
	f.Cloud.Colors = t.colors(f.Cloud.Colors, points)
	f.Cloud.Labels = t.shorts(f.Cloud.Labels, flagged(flags, flagLabels, points))
	f.Cloud.Sources = t.shorts(f.Cloud.Sources, flagged(flags, flagSources, points))
	images := t.number()
	if images > depth.MaxCameras {
		return fmt.Errorf("%w: %d images, expected at most %d", ErrJournal, images, depth.MaxCameras)
	}
	f.Images = slices.Grow(f.Images[:0], images)[:images]
	for i := range f.Images {
		m := &f.Images[i]
		flags, pixels := t.number(), t.number()
		m.Depth = t.shorts(m.Depth, pixels)
		m.Colors = t.colors(m.Colors, flagged(flags, flagColors, pixels))
		m.Labels = t.shorts(m.Labels, flagged(flags, flagLabels, pixels))
	}
	if t.truncated || len(t.rest) > 0 {
		return fmt.Errorf("%w: the parts of a frame do not sum up to its %d bytes", ErrJournal, len(data))
	}
	return nil
}

func flagged(flags, flag, n int) int {
	if flags&flag == 0 {
		return 0
	}
	return n
}

// appendTile appends a tile after its times.
func appendTile(dst []byte, t *Tile) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(t.Tile))
	dst = append(dst, uint8(t.Quality), 0)
	dst = append(dst, t.Codec[:]...)
	return append(dst, t.Data...)
}

// parseHead parses and checks the payload of the first record.
func parseHead(data []byte) (Head, error) {
	var h Head
	if err := json.Unmarshal(data, &h); err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	switch {
	case !(h.FrameRate > 0 && h.FrameRate <= 1000):
		return Head{}, fmt.Errorf(
			"%w: %g frames per second, expected more than 0 and at most 1000",
			ErrJournal,
			h.FrameRate,
		)
	case h.Points < 0 || h.Points > maxPayload:
		return Head{}, fmt.Errorf("%w: %d points", ErrJournal, h.Points)
	case len(h.Cameras) > depth.MaxCameras:
		return Head{}, fmt.Errorf("%w: %d cameras, expected at most %d", ErrJournal, len(h.Cameras), depth.MaxCameras)
	}
	for i := range h.Cameras {
		if err := h.Cameras[i].Validate(); err != nil {
			return Head{}, fmt.Errorf("%w: %w", ErrJournal, err)
		}
	}
	switch h.Content {
	case Points:
		if !ordered(h.Box) {
			return Head{}, fmt.Errorf("%w: box %v", ErrJournal, h.Box)
		}
	case Images:
		if len(h.Cameras) == 0 {
			return Head{}, fmt.Errorf("%w: images, but no cameras", ErrJournal)
		}
	case Encoded:
		if h.Publication == nil {
			return Head{}, fmt.Errorf("%w: encoded frames, but no publication", ErrJournal)
		}
		if err := h.Publication.Validate(); err != nil {
			return Head{}, fmt.Errorf("%w: %w", ErrJournal, err)
		}
	default:
		return Head{}, fmt.Errorf("%w: content %.20q, expected points, images or encoded", ErrJournal, h.Content)
	}
	return h, nil
}

func ordered(box volumetric.BoundingBox) bool {
	for axis := range 3 {
		if !(box.Min[axis] <= box.Max[axis]) {
			return false
		}
	}
	return true
}
