package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Entry describes a frame, or tile, without reading its data.
type Entry struct {
	Number int64
	// Wall is the capture time by the clock of the recording computer.
	Wall time.Time
	// Captured and Written are the capture time and the record time, since the first capture.
	Captured, Written time.Duration
	// Tile, Quality and Codec describe a tile; Bytes is the size of its data.
	Tile    int
	Quality volumetric.Quality
	Codec   volumetric.FourCC
	Bytes   int

	from   int64 // offset of its record
	length uint32
}

// Reader reads a journal.
type Reader struct {
	file      io.ReaderAt
	closer    io.Closer
	head      Head
	entries   []Entry
	discarded int64
	buffers   sync.Pool // of *[]byte
}

// Open reads a journal's head and indexes its records. Errors wrap ErrJournal and name the file.
func Open(path string) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		var r *Reader
		if r, err = newReader(file, info.Size()); err == nil {
			r.closer = file
			return r, nil
		}
	}
	_ = file.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}

func newReader(file io.ReaderAt, size int64) (*Reader, error) {
	r := &Reader{file: file}
	r.buffers.New = func() any { return new([]byte) }
	begin := make([]byte, len(magic)+recordSize)
	if _, err := file.ReadAt(begin, 0); err != nil || string(begin[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: the file does not start with %s", ErrJournal, magic)
	}
	kind, length := [4]byte(begin[len(magic):]), binary.LittleEndian.Uint32(begin[len(magic)+4:])
	if kind != kindHead || length > maxHead {
		return nil, fmt.Errorf(
			"%w: first record is %q of %d bytes, expected head of at most %d",
			ErrJournal,
			kind,
			length,
			maxHead,
		)
	}
	head := Entry{from: int64(len(magic)), length: length}
	payload, err := r.payload(&head, new([]byte))
	if err != nil {
		return nil, err
	}
	if r.head, err = parseHead(payload); err != nil {
		return nil, err
	}
	return r, r.index(head.from+recordSize+int64(length), size)
}

// index indexes the records from an offset on. A record that extends beyond the end, or is invalid,
// ends the journal before it.
func (r *Reader) index(at, size int64) error {
	kind, least := kindFrame, timesSize
	if r.head.Content == Encoded {
		kind, least = kindTile, timesSize+tileSize
	}
	buffer := make([]byte, recordSize+timesSize+tileSize)
	for at < size {
		begin := buffer[:min(int64(len(buffer)), size-at)]
		if n, err := r.file.ReadAt(begin, at); n < len(begin) {
			return errors.Join(io.ErrUnexpectedEOF, err)
		}
		if len(begin) < recordSize+least || [4]byte(begin) != kind {
			break
		}
		length := binary.LittleEndian.Uint32(begin[4:])
		if int64(length) < int64(least) || length > maxPayload || int64(length) > size-at-recordSize {
			break
		}
		entry := Entry{from: at, length: length}
		entry.setTimes(parseTimes(begin[recordSize:]))
		if kind == kindTile {
			entry.setTile(begin[recordSize+timesSize:])
		}
		r.entries = append(r.entries, entry)
		at += recordSize + int64(length)
	}
	r.discarded = size - at
	return r.check()
}

func (e *Entry) setTimes(t times) {
	e.Number, e.Wall = t.number, time.Unix(0, t.wall)
	e.Captured, e.Written = time.Duration(t.captured), time.Duration(t.written)
}

func (e *Entry) setTile(data []byte) {
	e.Tile, e.Quality = int(binary.LittleEndian.Uint16(data)), volumetric.Quality(data[2])
	e.Codec = volumetric.FourCC(data[4:8])
	e.Bytes = int(e.length) - timesSize - tileSize
}

// maxSpan is the maximum duration of a journal: one year. Larger times are damage.
const maxSpan = 366 * 24 * time.Hour

// check checks and sorts the index.
func (r *Reader) check() error {
	if len(r.entries) == 0 {
		return fmt.Errorf("%w: no frames", ErrJournal)
	}
	for i := range r.entries {
		e := &r.entries[i]
		if e.Captured < 0 || e.Captured > maxSpan || e.Written < 0 || e.Written > maxSpan || e.Number < 0 {
			return fmt.Errorf(
				"%w: frame %d of number %d was captured after %v and written after %v",
				ErrJournal,
				i,
				e.Number,
				e.Captured,
				e.Written,
			)
		}
		if p := r.head.Publication; r.head.Content == Encoded &&
			(e.Tile >= len(p.Tiles) || int(e.Quality) >= len(p.Qualities)) {
			return fmt.Errorf(
				"%w: frame %d is of tile %d at quality %d, expected less than %d and %d",
				ErrJournal,
				i,
				e.Tile,
				e.Quality,
				len(p.Tiles),
				len(p.Qualities),
			)
		}
	}
	// Several goroutines capture and encode, so that their records may be slightly out of order.
	slices.SortStableFunc(r.entries, func(a, b Entry) int {
		if r.head.Content == Encoded {
			return cmp.Compare(a.Written, b.Written)
		}
		return cmp.Compare(a.Captured, b.Captured)
	})
	return nil
}

// Head returns the description of the source.
func (r *Reader) Head() Head { return r.head }

// Entries returns the frames, or tiles, in the order of their times.
func (r *Reader) Entries() []Entry { return r.entries }

// Torn returns the number of bytes at the end that are not a complete record, written when the
// program died.
func (r *Reader) Torn() int64 { return r.discarded }

// payload reads a record and verifies its checksum.
func (r *Reader) payload(e *Entry, buffer *[]byte) ([]byte, error) {
	size := recordSize + int(e.length)
	*buffer = slices.Grow((*buffer)[:0], size)[:size]
	if n, err := r.file.ReadAt(*buffer, e.from); n < size {
		return nil, fmt.Errorf("%w: %w", ErrJournal, errors.Join(io.ErrUnexpectedEOF, err))
	}
	record := *buffer
	if checksum(record[:8], record[recordSize:]) != binary.LittleEndian.Uint32(record[8:]) {
		return nil, fmt.Errorf("%w: the checksum of the record at byte %d is wrong", ErrJournal, e.from)
	}
	return record[recordSize:], nil
}

// ReadFrame replaces a frame by a frame of a journal of clouds or images.
func (r *Reader) ReadFrame(index int, into *Frame) error {
	if r.head.Content == Encoded {
		return fmt.Errorf("%w: captured frames requested from a journal of encoded ones", ErrContent)
	}
	e := &r.entries[index]
	buffer := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(buffer)
	payload, err := r.payload(e, buffer)
	if err != nil {
		return err
	}
	into.Number, into.Capture = e.Number, e.Wall
	return parseFrame(payload[timesSize:], into)
}

// ReadTile replaces a tile by a tile of a journal of encoded frames, in the memory of the tile.
func (r *Reader) ReadTile(index int, into *Tile) error {
	if r.head.Content != Encoded {
		return fmt.Errorf("%w: encoded tiles requested from a journal of %s", ErrContent, r.head.Content)
	}
	e := &r.entries[index]
	buffer := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(buffer)
	payload, err := r.payload(e, buffer)
	if err != nil {
		return err
	}
	into.Number, into.Capture, into.Tile, into.Quality, into.Codec = uint32(
		e.Number,
	), e.Wall, e.Tile, e.Quality, e.Codec
	into.Data = append(into.Data[:0], payload[timesSize+tileSize:]...)
	return nil
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}
