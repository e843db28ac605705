package kinect

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Identifiers of the parsed elements (RFC 9559 section 5.1).
const (
	idHeader         = 0x1A45DFA3
	idDocType        = 0x4282
	idSegment        = 0x18538067
	idInfo           = 0x1549A966
	idTimestampScale = 0x2AD7B1
	idTracks         = 0x1654AE6B
	idTrackEntry     = 0xAE
	idTrackNumber    = 0xD7
	idTrackName      = 0x536E
	idCodecID        = 0x86
	idCodecPrivate   = 0x63A2
	idDuration       = 0x23E383
	idEncodings      = 0x6D80
	idAttachments    = 0x1941A469
	idAttachedFile   = 0x61A7
	idFileName       = 0x466E
	idFileData       = 0x465C
	idTags           = 0x1254C367
	idTag            = 0x7373
	idSimpleTag      = 0x67C8
	idTagName        = 0x45A3
	idTagString      = 0x4487
	idCluster        = 0x1F43B675
	idTimestamp      = 0xE7
	idBlockGroup     = 0xA0
	idBlock          = 0xA1
	idSimpleBlock    = 0xA3
)

// maxValue is the maximum size of elements that are read as a whole, in bytes. A calibration has 4
// kB. Frames are not read as a whole.
const maxValue = 1 << 20

// track is a TrackEntry.
type track struct {
	number        uint64
	name, codec   string
	private       []byte
	frameInterval uint64 // nanoseconds
	encoded       bool   // compressed or encrypted by Matroska
}

// frame is the location of a block's data in the file.
type frame struct {
	at   int64 // nanoseconds
	from int64
	size int32
}

// matroska contains the parts of a file that a recording needs.
type matroska struct {
	scale  uint64 // nanoseconds per tick
	tracks []track
	tags   map[string]string
	files  map[string][]byte
	blocks map[uint64][]frame // by track number
}

// walker reads a file from beginning to end. The walker enters container elements by continuing after their header, so
// that unknown sizes, left by a recorder that was interrupted, do no harm.
type walker struct {
	file      io.ReaderAt
	at, size  int64
	window    [4096]byte
	windowAt  int64
	windowLen int
	out       *matroska

	cluster  uint64 // ticks
	fileName string // name of the attached file whose data follows
	tag      string // name of the tag whose value follows
}

// readMatroska indexes a file of the given size. The memory is bounded by this size.
func readMatroska(file io.ReaderAt, size int64) (*matroska, error) {
	w := &walker{file: file, size: size, out: &matroska{
		scale: 1e6, tags: map[string]string{}, files: map[string][]byte{}, blocks: map[uint64][]frame{},
	}}
	if id, _, err := w.header(); err != nil || id != idHeader {
		return nil, fmt.Errorf("%w: the file does not start with an EBML header", ErrMatroska)
	}
	for w.at < w.size {
		if err := w.element(); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) && len(w.out.blocks) > 0 {
				break // an interrupted recorder; the preceding blocks are complete
			}
			return nil, fmt.Errorf("%w: at byte %d: %w", ErrMatroska, w.at, err)
		}
	}
	return w.out, nil
}

// bytes returns the next bytes of the file, up to the size of the window, without advancing.
func (w *walker) bytes(n int) ([]byte, error) {
	if w.size-w.at < int64(n) {
		return nil, io.ErrUnexpectedEOF
	}
	if w.at < w.windowAt || w.at+int64(n) > w.windowAt+int64(w.windowLen) {
		read, err := w.file.ReadAt(w.window[:min(int64(len(w.window)), w.size-w.at)], w.at)
		if read < n {
			return nil, errors.Join(io.ErrUnexpectedEOF, err)
		}
		w.windowAt, w.windowLen = w.at, read
	}
	return w.window[w.at-w.windowAt:][:n], nil
}

// vint reads a number of variable length. The number of leading zeros of its first byte is the
// number of further bytes. Identifiers keep the marker bit.
func (w *walker) vint(most int, keepMarker bool) (value uint64, unknown bool, err error) {
	first, err := w.bytes(1)
	if err != nil {
		return 0, false, err
	}
	length, marker := 1, byte(0x80)
	for length <= most && first[0]&marker == 0 {
		length, marker = length+1, marker>>1
	}
	if length > most {
		return 0, false, fmt.Errorf("a number of more than %d bytes", most)
	}
	data, err := w.bytes(length)
	if err != nil {
		return 0, false, err
	}
	for i, b := range data {
		if i == 0 && !keepMarker {
			b &^= marker
		}
		value = value<<8 | uint64(b)
	}
	w.at += int64(length)
	return value, value == 1<<(7*length)-1, nil
}

// header reads an element's identifier and size. An unknown size becomes the rest of the file.
func (w *walker) header() (id uint64, size int64, err error) {
	id, _, err = w.vint(4, true)
	if err != nil {
		return 0, 0, err
	}
	length, unknown, err := w.vint(8, false)
	switch {
	case err != nil:
		return 0, 0, err
	case unknown:
		return id, w.size - w.at, nil
	}
	return id, int64(length), nil // at most 2^56
}

// element reads one element or enters it.
func (w *walker) element() error {
	id, size, err := w.header()
	if err != nil {
		return err
	}
	switch id {
	case idSegment,
		idInfo,
		idTracks,
		idAttachments,
		idAttachedFile,
		idTags,
		idTag,
		idSimpleTag,
		idCluster,
		idBlockGroup,
		idHeader:
		return nil
	case idTrackEntry:
		if len(w.out.tracks) == 128 {
			return errors.New("more than 128 tracks")
		}
		w.out.tracks = append(w.out.tracks, track{})
		return nil
	}
	if size > w.size-w.at {
		return io.ErrUnexpectedEOF
	}
	end := w.at + size
	switch id {
	case idSimpleBlock, idBlock:
		err = w.block(end)
	case idDocType,
		idTimestampScale,
		idTimestamp,
		idTrackNumber,
		idTrackName,
		idCodecID,
		idCodecPrivate,
		idDuration,
		idEncodings,
		idFileName,
		idFileData,
		idTagName,
		idTagString:
		err = w.value(id, size)
	}
	w.at = end
	return err
}

// value reads an element as a whole.
func (w *walker) value(id uint64, size int64) error {
	if size > maxValue {
		return fmt.Errorf("element %#x has %d bytes, expected at most %d", id, size, maxValue)
	}
	data := make([]byte, size)
	if n, err := w.file.ReadAt(data, w.at); n < len(data) {
		return errors.Join(io.ErrUnexpectedEOF, err)
	}
	text := strings.TrimRight(string(data), "\x00")
	switch id {
	case idDocType:
		if text != "matroska" && text != "webm" {
			return fmt.Errorf("type of document %.20q, expected matroska", text)
		}
	case idTimestampScale:
		if w.out.scale = number(data); w.out.scale == 0 || w.out.scale > 1e9 {
			return fmt.Errorf("%d ns per tick, expected 1 to 1e9", w.out.scale)
		}
	case idTimestamp:
		w.cluster = number(data)
	case idFileName:
		w.fileName = text
	case idFileData:
		w.out.files[w.fileName] = data
	case idTagName:
		w.tag = text
	case idTagString:
		w.out.tags[w.tag] = text
	default:
		return w.trackValue(id, data, text)
	}
	return nil
}

func (w *walker) trackValue(id uint64, data []byte, text string) error {
	if len(w.out.tracks) == 0 {
		return errors.New("a track's property outside of tracks")
	}
	t := &w.out.tracks[len(w.out.tracks)-1]
	switch id {
	case idTrackNumber:
		t.number = number(data)
	case idTrackName:
		t.name = text
	case idCodecID:
		t.codec = text
	case idCodecPrivate:
		t.private = data
	case idDuration:
		t.frameInterval = number(data)
	case idEncodings:
		t.encoded = true
	}
	return nil
}

// number returns an unsigned integer of up to 8 bytes, or the last 8 bytes of a longer one.
func number(data []byte) uint64 {
	var value uint64
	for _, b := range data {
		value = value<<8 | uint64(b)
	}
	return value
}

// block records the location of a block's data, after the track number, a 16-bit time and a byte of
// flags.
func (w *walker) block(end int64) error {
	number, _, err := w.vint(8, false)
	if err != nil {
		return err
	}
	head, err := w.bytes(3)
	if err != nil {
		return err
	}
	if head[2]&0x06 != 0 {
		return fmt.Errorf("a block with several frames, expected one")
	}
	relative := int16(uint16(head[0])<<8 | uint16(head[1]))
	w.at += 3
	if w.at > end {
		return errors.New("a block without data")
	}
	if end-w.at > 1<<30 {
		return fmt.Errorf("a frame of %d bytes, expected at most a gigabyte", end-w.at)
	}
	ticks := int64(w.cluster) + int64(relative)
	if ticks < 0 || uint64(ticks) > 1<<62/w.out.scale {
		return fmt.Errorf("a block at %d ticks of %d ns", ticks, w.out.scale)
	}
	w.out.blocks[number] = append(
		w.out.blocks[number],
		frame{at: ticks * int64(w.out.scale), from: w.at, size: int32(end - w.at)},
	)
	return nil
}
