package pointcloud

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// readBufferBytes has room for the largest header, and therefore for the largest vertex: a property
// takes at least 12 bytes in the header and at most 8 bytes in a vertex.
const readBufferBytes = 2 * maxHeaderBytes

// PLYReader reads PLY files one after another and reuses memory. One goroutine at a time uses a PLYReader.
type PLYReader struct {
	config Config
	source *bufio.Reader
	fields [][]byte
}

// NewPLYReader returns a reader with the given limits.
func NewPLYReader(config Config) *PLYReader {
	return &PLYReader{config: config, source: bufio.NewReaderSize(nil, readBufferBytes)}
}

// Read reads a file as the function ReadPLY does, within the reader's own limits.
func (r *PLYReader) Read(source io.Reader, into *Cloud) error {
	into.Reset()
	r.source.Reset(source)
	defer r.source.Reset(nil)
	if err := r.read(into); err != nil {
		into.Reset()
		return fmt.Errorf("read PLY: %w", err)
	}
	return nil
}

func (r *PLYReader) read(into *Cloud) error {
	h, err := readHeader(r.source)
	if err != nil {
		return err
	}
	vertex := slices.IndexFunc(h.elements, func(e element) bool { return e.name == "vertex" })
	if vertex < 0 {
		return fmt.Errorf("%w: no element \"vertex\"", ErrMalformed)
	}
	if count := h.elements[vertex].count; count > int64(r.config.MaxPoints) {
		return fmt.Errorf("%w: header announces %d points, expected at most %d", ErrLimit, count, r.config.MaxPoints)
	}
	points, err := newLayout(&h.elements[vertex])
	if err != nil {
		return err
	}
	for i := range h.elements {
		switch e := &h.elements[i]; {
		case i != vertex:
			err = r.skip(e, h.format)
		case h.format == ASCII:
			err = r.readLines(into, e, &points)
		default:
			err = r.readBinary(into, e, &points, h.format)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// truncated reports the position at which the file ended. Other errors of the source are returned
// with the position.
func truncated(err error, e *element, instance int64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf(
			"%w: file ends at %s %d, expected %d: %w",
			ErrMalformed,
			e.name,
			instance,
			e.count,
			io.ErrUnexpectedEOF,
		)
	}
	return fmt.Errorf("%s %d of %d: %w", e.name, instance, e.count, err)
}

func byteOrder(f Format) binary.ByteOrder {
	if f == BinaryBigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (r *PLYReader) readBinary(into *Cloud, e *element, points *layout, format Format) error {
	stride, fixed := e.stride()
	if !fixed {
		return r.readVarying(into, e, points, byteOrder(format))
	}
	plain := points.plain(format)
	perRead := int64(readBufferBytes / stride)
	for done := int64(0); done < e.count; {
		n := min(e.count-done, perRead)
		data, err := r.source.Peek(int(n) * stride)
		if err != nil {
			return truncated(err, e, done+int64(len(data)/stride))
		}
		into.reserve(int(n), points)
		if plain {
			points.appendPlain(into, data, stride)
		} else {
			points.appendFixed(into, data, stride, byteOrder(format))
		}
		// Peeked data can be discarded without an error.
		_, _ = r.source.Discard(len(data))
		done += n
	}
	return nil
}

// reserve makes room for n more points. The memory grows in proportion to the data that arrived.
func (c *Cloud) reserve(n int, l *layout) {
	c.Positions = slices.Grow(c.Positions, n)
	c.Colors = slices.Grow(c.Colors, n)
	if l.labelled {
		c.Labels = slices.Grow(c.Labels, n)
	}
	if l.sourced {
		c.Sources = slices.Grow(c.Sources, n)
	}
}

// readVarying reads vertices with lists among the properties.
func (r *PLYReader) readVarying(into *Cloud, e *element, points *layout, order binary.ByteOrder) error {
	var values row
	for instance := range e.count {
		for i, p := range e.properties {
			if p.count != noScalar {
				if err := r.skipList(p, order); err != nil {
					return truncated(err, e, instance)
				}
				continue
			}
			value, err := r.readScalar(p.value, order)
			if err != nil {
				return truncated(err, e, instance)
			}
			for c := range points.columns {
				if points.columns[c].property == i {
					values[c] = value
				}
			}
		}
		points.appendTo(into, &values)
	}
	return nil
}

func (r *PLYReader) readScalar(s scalar, order binary.ByteOrder) (float64, error) {
	data, err := r.source.Peek(s.size())
	if err != nil {
		return 0, err
	}
	value := s.decode(data, order)
	_, _ = r.source.Discard(len(data))
	return value, nil
}

func (r *PLYReader) skipList(p property, order binary.ByteOrder) error {
	count, err := r.readScalar(p.count, order)
	if err != nil {
		return err
	}
	if count < 0 {
		return fmt.Errorf("%w: list %q has %v values, expected 0 or more", ErrMalformed, p.name, count)
	}
	_, err = r.discard(int64(count) * int64(p.value.size()))
	return err
}

// discard skips n bytes in steps that fit an int of any size, and returns the number of bytes that were skipped.
func (r *PLYReader) discard(n int64) (skipped int64, err error) {
	for skipped < n && err == nil {
		var step int
		step, err = r.source.Discard(int(min(n-skipped, 1<<20)))
		skipped += int64(step)
	}
	return skipped, err
}

// skip consumes an element without points.
func (r *PLYReader) skip(e *element, format Format) error {
	if len(e.properties) == 0 {
		return nil
	}
	if format == ASCII {
		for instance := range e.count {
			if err := r.skipLine(); err != nil {
				return truncated(err, e, instance)
			}
		}
		return nil
	}
	stride, fixed := e.stride()
	if fixed {
		if e.count > math.MaxInt64/int64(stride) {
			return fmt.Errorf("%w: element %q has %d instances of %d bytes", ErrLimit, e.name, e.count, stride)
		}
		if skipped, err := r.discard(e.count * int64(stride)); err != nil {
			return truncated(err, e, skipped/int64(stride))
		}
		return nil
	}
	for instance := range e.count {
		for _, p := range e.properties {
			var err error
			if p.count != noScalar {
				err = r.skipList(p, byteOrder(format))
			} else {
				_, err = r.discard(int64(p.value.size()))
			}
			if err != nil {
				return truncated(err, e, instance)
			}
		}
	}
	return nil
}
