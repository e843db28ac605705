package pointcloud

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxHeaderBytes is the maximum size of the header. A property has about 20 bytes: real headers
// stay below 1 kB even with dozens of properties.
const maxHeaderBytes = 64 << 10

// scalar is one of the eight number types of PLY.
type scalar uint8

const (
	noScalar scalar = iota
	int8Scalar
	uint8Scalar
	int16Scalar
	uint16Scalar
	int32Scalar
	uint32Scalar
	float32Scalar
	float64Scalar
)

// scalarNames contains the names of the original format and the names with sizes.
var scalarNames = map[string]scalar{
	"char": int8Scalar, "int8": int8Scalar, "uchar": uint8Scalar, "uint8": uint8Scalar,
	"short": int16Scalar, "int16": int16Scalar, "ushort": uint16Scalar, "uint16": uint16Scalar,
	"int": int32Scalar, "int32": int32Scalar, "uint": uint32Scalar, "uint32": uint32Scalar,
	"float": float32Scalar, "float32": float32Scalar, "double": float64Scalar, "float64": float64Scalar,
}

// size returns the number of bytes in binary files.
func (s scalar) size() int {
	switch s {
	case int8Scalar, uint8Scalar:
		return 1
	case int16Scalar, uint16Scalar:
		return 2
	case int32Scalar, uint32Scalar, float32Scalar:
		return 4
	default:
		return 8
	}
}

func (s scalar) floating() bool { return s == float32Scalar || s == float64Scalar }

// property is one value, or one list of values, of every instance of an element.
type property struct {
	name  string
	value scalar
	// count is the type of the list's length, or noScalar for a single value.
	count scalar
}

// element is one table of a PLY file.
type element struct {
	name       string
	count      int64
	properties []property
}

// stride returns the size in bytes of one instance in binary files. fixed is false if lists make
// the size variable.
func (e *element) stride() (size int, fixed bool) {
	for _, p := range e.properties {
		if p.count != noScalar {
			return 0, false
		}
		size += p.value.size()
	}
	return size, true
}

type header struct {
	format   Format
	elements []element
}

// readHeader consumes the header, including the last line.
func readHeader(r *bufio.Reader) (*header, error) {
	h := &header{}
	left := maxHeaderBytes
	formatSeen := false
	for number := 1; ; number++ {
		line, err := readHeaderLine(r, &left)
		if err != nil {
			return nil, fmt.Errorf("header line %d: %w", number, err)
		}
		fields := strings.Fields(line)
		switch {
		case number == 1:
			if line != "ply" {
				return nil, fmt.Errorf("%w: file begins with %.16q, expected \"ply\"", ErrMalformed, line)
			}
			continue
		case len(fields) == 0 || fields[0] == "comment" || fields[0] == "obj_info":
			continue
		case fields[0] == "end_header":
			if !formatSeen {
				return nil, fmt.Errorf("%w: header has no format line", ErrMalformed)
			}
			return h, nil
		case fields[0] == "format":
			err = h.setFormat(fields)
			formatSeen = true
		case fields[0] == "element":
			err = h.addElement(fields)
		case fields[0] == "property":
			err = h.addProperty(fields)
		default:
			err = fmt.Errorf(
				"%w: keyword is %.32q, expected format, comment, element, property or end_header",
				ErrMalformed,
				fields[0],
			)
		}
		if err != nil {
			return nil, fmt.Errorf("header line %d: %w", number, err)
		}
	}
}

// readHeaderLine returns one line without the line ending and subtracts the size from left.
func readHeaderLine(r *bufio.Reader, left *int) (string, error) {
	raw, err := r.ReadSlice('\n')
	*left -= len(raw)
	switch {
	case *left < 0 || errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("%w: header is larger than %d bytes", ErrLimit, maxHeaderBytes)
	case errors.Is(err, io.EOF):
		return "", fmt.Errorf("%w: file ends within the header, expected end_header", ErrMalformed)
	case err != nil:
		return "", err
	}
	return string(bytes.TrimRight(raw, "\r\n")), nil
}

func (h *header) setFormat(fields []string) error {
	if len(fields) != 3 || fields[2] != "1.0" {
		return fmt.Errorf(
			"%w: format line is %.64q, expected \"format NAME 1.0\"",
			ErrMalformed,
			strings.Join(fields, " "),
		)
	}
	for _, f := range []Format{ASCII, BinaryLittleEndian, BinaryBigEndian} {
		if fields[1] == f.String() {
			h.format = f
			return nil
		}
	}
	return fmt.Errorf(
		"%w: format is %.32q, expected ascii, binary_little_endian or binary_big_endian",
		ErrMalformed,
		fields[1],
	)
}

func (h *header) addElement(fields []string) error {
	if len(fields) != 3 {
		return fmt.Errorf("%w: element line has %d words, expected \"element NAME COUNT\"", ErrMalformed, len(fields))
	}
	count, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || count < 0 {
		return fmt.Errorf(
			"%w: count of element %.32q is %.32q, expected 0 to %d",
			ErrMalformed,
			fields[1],
			fields[2],
			int64(math.MaxInt64),
		)
	}
	if slices.ContainsFunc(h.elements, func(e element) bool { return e.name == fields[1] }) {
		return fmt.Errorf("%w: element %.32q is declared twice", ErrMalformed, fields[1])
	}
	h.elements = append(h.elements, element{name: fields[1], count: count})
	return nil
}

func (h *header) addProperty(fields []string) error {
	var p property
	switch {
	case len(h.elements) == 0:
		return fmt.Errorf("%w: property before the first element", ErrMalformed)
	case len(fields) == 3:
		p = property{name: fields[2], value: scalarNames[fields[1]]}
	case len(fields) == 5 && fields[1] == "list":
		p = property{name: fields[4], value: scalarNames[fields[3]], count: scalarNames[fields[2]]}
		if p.count == noScalar || p.count.floating() {
			return fmt.Errorf(
				"%w: list %.32q is counted in %.32q, expected an integer type",
				ErrMalformed,
				p.name,
				fields[2],
			)
		}
	default:
		return fmt.Errorf(
			"%w: property line has %d words, expected \"property TYPE NAME\" or \"property list TYPE TYPE NAME\"",
			ErrMalformed,
			len(fields),
		)
	}
	if p.value == noScalar {
		return fmt.Errorf(
			"%w: type of property %.32q is unknown, expected char, uchar, short, ushort, int, uint, float or double",
			ErrMalformed,
			p.name,
		)
	}
	e := &h.elements[len(h.elements)-1]
	if slices.ContainsFunc(e.properties, func(q property) bool { return q.name == p.name }) {
		return fmt.Errorf("%w: property %.32q of element %.32q is declared twice", ErrMalformed, p.name, e.name)
	}
	e.properties = append(e.properties, p)
	return nil
}
