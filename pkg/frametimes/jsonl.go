package frametimes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrRecord reports a malformed record. The wrapping error contains the value found and the value
// expected.
var ErrRecord = errors.New("malformed frame times")

// maxLine is the maximum length of a line in bytes. The longest line written has about 7 kB: names
// of MaxNameLength bytes that JSON escapes, and every stamp and layer.
const maxLine = 64 << 10

// Writer writes records.
type Writer interface {
	Write(*Record) error
}

// JSONLWriter writes records as JSON, one per line.
type JSONLWriter struct {
	out  io.Writer
	line []byte
}

// NewJSONLWriter returns a writer to out. The writer calls Write once per record.
func NewJSONLWriter(out io.Writer) *JSONLWriter { return &JSONLWriter{out: out} }

// Write writes one record.
func (w *JSONLWriter) Write(r *Record) error {
	w.line = append(r.AppendJSON(w.line[:0]), '\n')
	_, err := w.out.Write(w.line)
	return err
}

// AppendJSON appends the record to dst as a JSON object on one line: stamps in nanoseconds since
// 1970, clocks in nanoseconds, and the layers, which follow from the stamps, in milliseconds.
// Unknown values are omitted.
func (r *Record) AppendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"participant":`...), r.Track.Participant)
	dst = appendString(append(dst, `,"publication":`...), r.Track.Publication)
	dst = strconv.AppendInt(append(dst, `,"tile":`...), int64(r.Track.Tile), 10)
	dst = strconv.AppendInt(append(dst, `,"quality":`...), int64(r.Track.Quality), 10)
	if r.Receiver != "" {
		dst = appendString(append(dst, `,"receiver":`...), r.Receiver)
	}
	dst = strconv.AppendInt(append(dst, `,"frame":`...), r.Frame, 10)
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), int64(r.Bytes), 10)
	dst = append(dst, `,"stamps_ns":{`...)
	separator := ""
	for i, t := range r.Times {
		if t != 0 {
			dst = append(append(append(append(dst, separator...), '"'), stampNames[i]...), `":`...)
			dst = strconv.AppendInt(dst, t, 10)
			separator = ","
		}
	}
	dst = append(dst, `},"clocks":{`...)
	separator = ""
	for i := range r.Clocks {
		if c := &r.Clocks[i]; c.Source != "" {
			dst = append(append(append(append(dst, separator...), '"'), hostNames[i]...), `":`...)
			dst = c.appendJSON(dst)
			separator = ","
		}
	}
	return append(r.appendLayers(append(dst, `},"layers_ms":{`...)), "}}"...)
}

func (r *Record) appendLayers(dst []byte) []byte {
	layers := r.Layers()
	separator := ""
	for i := range Layer(LayerCount) {
		if d, known := layers.Get(i); known {
			dst = append(append(append(append(dst, separator...), '"'), spans[i].name...), `":`...)
			dst = appendMilliseconds(dst, d)
			separator = ","
		}
	}
	return dst
}

func (c *Clock) appendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"source":`...), string(c.Source))
	dst = strconv.AppendInt(append(dst, `,"offset_ns":`...), int64(c.Offset), 10)
	dst = strconv.AppendInt(append(dst, `,"bound_ns":`...), int64(c.Bound), 10)
	dst = strconv.AppendInt(append(dst, `,"uncertainty_ns":`...), int64(c.Uncertainty), 10)
	dst = strconv.AppendInt(append(dst, `,"disagreement_ns":`...), int64(c.Disagreement), 10)
	return append(dst, '}')
}

// appendMilliseconds appends a duration in milliseconds, exact to the nanosecond.
func appendMilliseconds(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d)/1e6, 'f', -1, 64)
}

func appendString(dst []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("a string has no JSON: " + err.Error())
	}
	return append(dst, quoted...)
}

// recordJSON is the decoded form of a record. Layers are not decoded, because they follow from the
// stamps.
type recordJSON struct {
	volumetric.TrackRef
	Receiver string               `json:"receiver"`
	Frame    int64                `json:"frame"`
	Bytes    int                  `json:"bytes"`
	Stamps   map[string]int64     `json:"stamps_ns"`
	Clocks   map[string]clockJSON `json:"clocks"`
}

type clockJSON struct {
	Source       Source `json:"source"`
	Offset       int64  `json:"offset_ns"`
	Bound        int64  `json:"bound_ns"`
	Uncertainty  int64  `json:"uncertainty_ns"`
	Disagreement int64  `json:"disagreement_ns"`
}

// ParseJSON decodes a record from a JSON object. Errors wrap ErrRecord.
func ParseJSON(line []byte) (Record, error) {
	var read recordJSON
	if err := json.Unmarshal(line, &read); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	r := Record{Track: read.TrackRef, Receiver: read.Receiver, Frame: read.Frame, Bytes: read.Bytes}
	for name, t := range read.Stamps {
		stamp, known := byStampName[name]
		if !known {
			return Record{}, fmt.Errorf("%w: unknown stamp %.32q", ErrRecord, name)
		}
		r.Times[stamp] = t
	}
	for name, c := range read.Clocks {
		host, err := hostOf(name)
		if err != nil {
			return Record{}, err
		}
		r.Clocks[host] = Clock{
			Source: c.Source, Offset: time.Duration(c.Offset), Bound: time.Duration(c.Bound),
			Uncertainty: time.Duration(c.Uncertainty), Disagreement: time.Duration(c.Disagreement),
		}
	}
	return r, r.check()
}

func hostOf(name string) (Host, error) {
	for i, known := range hostNames {
		if name == known {
			return Host(i), nil
		}
	}
	return 0, fmt.Errorf("%w: unknown host %.32q, expected sender, server, receiver or relay", ErrRecord, name)
}

// check returns an error for values that no writer produces.
func (r *Record) check() error {
	for i, c := range r.Clocks {
		switch {
		case c.Source != "" && !c.Source.Valid():
			return fmt.Errorf(
				"%w: source of the clock of the %s is %.32q, expected estimated, system or ptp",
				ErrRecord,
				hostNames[i],
				c.Source,
			)
		case c.Bound < 0 || c.Uncertainty < 0:
			return fmt.Errorf(
				"%w: clock of the %s has bound %v and uncertainty %v, expected 0 or more",
				ErrRecord,
				hostNames[i],
				c.Bound,
				c.Uncertainty,
			)
		}
	}
	for i, t := range r.Times {
		if t < 0 {
			return fmt.Errorf("%w: %s is %d, expected 0 or more", ErrRecord, stampNames[i], t)
		}
	}
	if r.Bytes < 0 {
		return fmt.Errorf("%w: %d bytes, expected 0 or more", ErrRecord, r.Bytes)
	}
	return nil
}

// ReadJSONL calls take for every record of a file of JSON lines, until take returns an error. Empty
// lines are skipped. Errors in the file wrap ErrRecord and contain the line number.
func ReadJSONL(in io.Reader, take func(*Record) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	number := 0
	for lines.Scan() {
		number++
		if len(lines.Bytes()) == 0 {
			continue
		}
		r, err := ParseJSON(lines.Bytes())
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := take(&r); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("line %d: %w: longer than %d bytes", number+1, ErrRecord, maxLine)
	} else if err != nil {
		return err
	}
	return nil
}
