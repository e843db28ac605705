package recording

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Damage describes the parts of a recording that could not be read.
type Damage struct {
	// Torn counts bytes of incomplete records at the ends of segments, which the server was writing when it died.
	Torn int64 `json:"torn_bytes"`
	// Skipped counts bytes between intact records, or of records with invalid content.
	Skipped int64 `json:"skipped_bytes"`
	// CutOff counts segments without a last record: the server was killed, or is still recording.
	CutOff int `json:"cut_off_segments"`
}

// Reader reads the records of a recording in order. A Reader is owned by one goroutine.
type Reader struct {
	paths   []string
	segment *segment
	file    *os.File
	damage  Damage
}

// Open opens a recording: a segment, or a folder as Segments takes it.
func Open(path string) (*Reader, error) {
	paths, err := Segments(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{paths: paths}
	if err := r.advance(); err != nil {
		return nil, err
	}
	return r, nil
}

// advance opens the next segment.
func (r *Reader) advance() error {
	file, err := os.Open(r.paths[0])
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		r.segment, err = newSegment(file, info.Size())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", r.paths[0], err), file.Close())
	}
	r.file, r.paths = file, r.paths[1:]
	return nil
}

// Next returns the next record, and io.EOF after the last. The record is valid until the next call. Damaged parts are
// left out and counted.
func (r *Reader) Next() (Record, error) {
	for {
		record, err := r.segment.next()
		if !errors.Is(err, io.EOF) {
			return record, err
		}
		r.leave()
		if len(r.paths) == 0 {
			return nil, io.EOF
		}
		if err := r.advance(); err != nil {
			if !errors.Is(err, ErrFormat) {
				return nil, err
			}
			// A segment whose head is damaged says nothing about its publications.
			r.paths = r.paths[1:]
			r.damage.CutOff++
			r.segment = &segment{ended: true}
		}
	}
}

// leave adds the damage of the present segment to the sum and closes its file.
func (r *Reader) leave() {
	if r.file == nil {
		return
	}
	r.damage.Torn += r.segment.torn
	r.damage.Skipped += r.segment.skipped
	if !r.segment.ended {
		r.damage.CutOff++
	}
	_ = r.file.Close()
	r.file = nil
}

// Damage returns the damage of the segments that have been read.
func (r *Reader) Damage() Damage { return r.damage }

// Close closes the files.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

const (
	// readAhead is the size of the reading buffer: some records of a frame each.
	readAhead = 256 << 10
	// searchShare bounds the work of the search for intact records: the bytes that are read and checked in vain may
	// have this multiple of the size of the segment, and searchLeast in addition. A file could otherwise be made of
	// headers that each claim the rest of the file, or that each begin another search.
	searchShare = 4
	searchLeast = 1 << 20
	// searchStep is the number of bytes that a search reads first. It reads twice as many each time, up to readAhead.
	searchStep = 4 << 10
)

// segment reads the records of one segment.
type segment struct {
	source io.ReaderAt
	size   int64
	// at is the position of the next record, buffered reads from there.
	at       int64
	buffered *bufio.Reader
	payload  []byte
	header   [headerSize]byte
	// vain is the number of bytes that may still be read and checked in vain. block has those of the present search.
	vain          int64
	block         []byte
	torn, skipped int64
	ended         bool
}

// newSegment returns a segment whose first record is a head. Errors wrap ErrFormat or are those of the source.
func newSegment(source io.ReaderAt, size int64) (*segment, error) {
	s := &segment{source: source, size: size, vain: searchShare*size + searchLeast}
	magic := make([]byte, len(Magic))
	if n, err := source.ReadAt(magic, 0); n < len(magic) || string(magic) != Magic {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: the file begins with %.8q, expected %q", ErrFormat, magic[:n], Magic)
	}
	s.seek(int64(len(Magic)))
	h, ok, err := s.intact()
	if err != nil {
		return nil, err
	}
	if !ok || h.kind != kindHead {
		return nil, fmt.Errorf("%w: the first record is no intact head", ErrFormat)
	}
	s.seek(int64(len(Magic)))
	return s, nil
}

func (s *segment) seek(at int64) {
	s.at = at
	section := io.NewSectionReader(s.source, at, s.size-at)
	if s.buffered == nil {
		s.buffered = bufio.NewReaderSize(section, readAhead)
		return
	}
	s.buffered.Reset(section)
}

// next returns the next intact record.
func (s *segment) next() (Record, error) {
	for s.source != nil && s.at < s.size {
		h, ok, err := s.intact()
		if err != nil {
			return nil, err
		}
		if !ok {
			found, err := s.search()
			if err != nil {
				return nil, err
			}
			if !found {
				break
			}
			continue
		}
		s.at += headerSize + int64(h.length)
		record, err := h.parse(s.payload)
		if err != nil {
			s.skipped += headerSize + int64(h.length)
			continue
		}
		_, s.ended = record.(*End)
		return record, nil
	}
	return nil, io.EOF
}

// intact reads the record at the present position and reports whether it is complete and intact. The payload is then in
// s.payload.
func (s *segment) intact() (header, bool, error) {
	if s.size-s.at < headerSize {
		return header{}, false, nil
	}
	if _, err := io.ReadFull(s.buffered, s.header[:]); err != nil {
		return header{}, false, notEnd(err)
	}
	h, ok := parseHeader(s.header[:])
	if !ok || int64(h.length) > s.size-s.at-headerSize {
		return h, false, nil
	}
	if cap(s.payload) < h.length {
		s.payload = make([]byte, h.length, h.length+h.length/8)
	}
	s.payload = s.payload[:h.length]
	if _, err := io.ReadFull(s.buffered, s.payload); err != nil {
		return h, false, notEnd(err)
	}
	if crc32.Checksum(s.payload, castagnoli) != h.sum {
		s.vain -= int64(h.length)
		return h, false, nil
	}
	return h, true, nil
}

// notEnd returns nil for the end of a file that has become shorter since it was opened.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// search moves behind the damage at the present position, to the next header that a record can have. search returns
// false if there is none; the rest of the segment is then torn, or skipped if the search has become too long.
func (s *segment) search() (bool, error) {
	from := s.at
	if s.block == nil {
		s.block = make([]byte, readAhead)
	}
	step := int64(searchStep)
	for at := from + 1; at+headerSize <= s.size && s.vain > 0; step = min(2*step, readAhead) {
		block := s.block[:min(step, s.size-at)]
		n, err := s.source.ReadAt(block, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		s.vain -= int64(n)
		if n < headerSize {
			break
		}
		for i := 0; i+headerSize <= n; i++ {
			if !known(block[i:]) {
				continue
			}
			h, ok := parseHeader(block[i:])
			if ok && at+int64(i)+headerSize+int64(h.length) <= s.size {
				s.seek(at + int64(i))
				s.vain -= min(readAhead, s.size-s.at) // The next read fills the buffer.
				s.skipped += s.at - from
				return true, nil
			}
		}
		at += int64(n - headerSize + 1)
	}
	if s.vain > 0 {
		s.torn += s.size - from
	} else {
		s.skipped += s.size - from
	}
	s.at = s.size
	return false, nil
}

// known reports whether data begins with the kind of a record.
func known(data []byte) bool {
	switch kind(data[:4]) {
	case kindHead, kindPublication, kindMessage, kindFrame, kindUnit, kindLost, kindEnd:
		return true
	default:
		return false
	}
}
