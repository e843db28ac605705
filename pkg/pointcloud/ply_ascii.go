package pointcloud

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// skipLine consumes one line that is not blank, of any length.
func (r *PLYReader) skipLine() error {
	blank := true
	for {
		part, err := r.source.ReadSlice('\n')
		blank = blank && len(bytes.TrimSpace(part)) == 0
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && !blank:
			return nil
		case err != nil:
			return err
		case !blank:
			return nil
		}
	}
}

// readLines reads the vertices of an ASCII file, one per line. Blank lines are skipped.
func (r *PLYReader) readLines(into *Cloud, e *element, points *layout) error {
	for instance := int64(0); instance < e.count; {
		line, err := r.source.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%w: line of vertex %d is longer than %d bytes", ErrLimit, instance, readBufferBytes)
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return truncated(err, e, instance)
		}
		r.fields = splitFields(r.fields[:0], line)
		if len(r.fields) == 0 {
			continue
		}
		if err := points.appendLine(into, e, r.fields); err != nil {
			return fmt.Errorf("vertex %d of %d: %w", instance, e.count, err)
		}
		instance++
	}
	return nil
}

// splitFields appends the words of a line.
func splitFields(fields [][]byte, line []byte) [][]byte {
	for i := 0; i < len(line); {
		if line[i] <= ' ' {
			i++
			continue
		}
		begin := i
		for i < len(line) && line[i] > ' ' {
			i++
		}
		fields = append(fields, line[begin:i])
	}
	return fields
}

// appendLine adds the point on one line.
func (l *layout) appendLine(cloud *Cloud, e *element, fields [][]byte) error {
	var values row
	next := 0
	take := func(name string, bits int) (float64, error) {
		if next >= len(fields) {
			return 0, fmt.Errorf(
				"%w: line has %d values, expected a value for property %q",
				ErrMalformed,
				len(fields),
				name,
			)
		}
		value, err := strconv.ParseFloat(string(fields[next]), bits)
		// Values beyond the range of the type are infinite, and the point is omitted like other
		// points without a valid position.
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%w: property %q is %.32q, expected a number", ErrMalformed, name, fields[next])
		}
		next++
		return value, nil
	}
	for i, p := range e.properties {
		if p.count != noScalar {
			count, err := take(p.name, 64)
			if err != nil {
				return err
			}
			if !(count >= 0 && count <= float64(len(fields)-next)) {
				return fmt.Errorf(
					"%w: list %q has %v values, expected 0 to %d",
					ErrMalformed,
					p.name,
					count,
					len(fields)-next,
				)
			}
			next += int(count)
			continue
		}
		bits := 64
		if p.value == float32Scalar {
			bits = 32
		}
		value, err := take(p.name, bits)
		if err != nil {
			return err
		}
		for c := range l.columns {
			if l.columns[c].property == i {
				values[c] = value
			}
		}
	}
	if next != len(fields) {
		return fmt.Errorf("%w: line has %d values, expected %d", ErrMalformed, len(fields), next)
	}
	l.appendTo(cloud, &values)
	return nil
}
