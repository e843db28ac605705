package frametimes

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// identityColumns are the first columns of every line.
var identityColumns = []string{"participant", "publication", "tile", "quality", "receiver", "frame", "bytes"}

// clockFields are the columns of each host's clock.
var clockFields = []string{
	"clock",
	"clock_offset_ns",
	"clock_bound_ns",
	"clock_uncertainty_ns",
	"clock_disagreement_ns",
}

// Indices of the first column of each group, and the number of columns.
const (
	stampColumn = 7
	clockColumn = stampColumn + Stamps
	layerColumn = clockColumn + 5*Hosts
	columns     = layerColumn + LayerCount
)

// Columns returns the column names: the identity of the frame, the stamps in nanoseconds since
// 1970, the clocks in nanoseconds, and the layers, which follow from the stamps, in milliseconds.
// Unknown values are empty.
func Columns() []string {
	names := append(make([]string, 0, columns), identityColumns...)
	for _, name := range stampNames {
		names = append(names, name+"_ns")
	}
	for _, host := range hostNames {
		for _, field := range clockFields {
			names = append(names, host+"_"+field)
		}
	}
	for i := range spans {
		names = append(names, spans[i].name+"_ms")
	}
	return names
}

// CSVWriter writes records as CSV with a header.
type CSVWriter struct {
	out   *csv.Writer
	begun bool
	row   []string
}

// NewCSVWriter returns a writer to out.
func NewCSVWriter(out io.Writer) *CSVWriter {
	return &CSVWriter{out: csv.NewWriter(out), row: make([]string, columns)}
}

// Write writes one record, and the header before the first.
func (w *CSVWriter) Write(r *Record) error {
	if !w.begun {
		w.begun = true
		if err := w.out.Write(Columns()); err != nil {
			return err
		}
	}
	row := w.row
	row[0], row[1], row[4] = r.Track.Participant, r.Track.Publication, r.Receiver
	row[2], row[3] = strconv.Itoa(r.Track.Tile), strconv.Itoa(int(r.Track.Quality))
	row[5], row[6] = strconv.FormatInt(r.Frame, 10), strconv.Itoa(r.Bytes)
	for i, t := range r.Times {
		row[stampColumn+i] = ""
		if t != 0 {
			row[stampColumn+i] = strconv.FormatInt(t, 10)
		}
	}
	for i := range r.Clocks {
		r.Clocks[i].fill(row[clockColumn+i*len(clockFields):][:len(clockFields)])
	}
	layers := r.Layers()
	for i := range Layer(LayerCount) {
		row[layerColumn+int(i)] = ""
		if d, known := layers.Get(i); known {
			row[layerColumn+int(i)] = string(appendMilliseconds(nil, d))
		}
	}
	if err := w.out.Write(row); err != nil {
		return err
	}
	w.out.Flush()
	return w.out.Error()
}

// fill writes the columns of a clock. Without a source all columns are empty.
func (c *Clock) fill(fields []string) {
	if c.Source == "" {
		clear(fields)
		return
	}
	fields[0] = string(c.Source)
	for i, d := range []time.Duration{c.Offset, c.Bound, c.Uncertainty, c.Disagreement} {
		fields[1+i] = strconv.FormatInt(int64(d), 10)
	}
}

// ReadCSV calls take for every record of a CSV file, until take returns an error. The header must
// equal Columns. Errors in the file wrap ErrRecord and contain the line number.
func ReadCSV(in io.Reader, take func(*Record) error) error {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.ReuseRecord = columns, true
	header, err := rows.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	for i, name := range Columns() {
		if header[i] != name {
			return fmt.Errorf("%w: column %d is %.32q, expected %q", ErrRecord, i+1, header[i], name)
		}
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRecord, err)
		}
		r, err := parseRow(row)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
		if err := take(&r); err != nil {
			return err
		}
	}
}

// rowReader parses the numbers of a row and keeps the first error.
type rowReader struct {
	row []string
	err error
}

func (w *rowReader) number(column int) int64 {
	text := w.row[column]
	if text == "" || w.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.err = fmt.Errorf("%w: column %d is %.32q, expected a whole number", ErrRecord, column+1, text)
	}
	return n
}

func parseRow(row []string) (Record, error) {
	w := &rowReader{row: row}
	r := Record{Receiver: row[4], Frame: w.number(5), Bytes: int(w.number(6))}
	r.Track.Participant, r.Track.Publication = row[0], row[1]
	r.Track.Tile, r.Track.Quality = int(w.number(2)), volumetric.Quality(w.number(3))
	for i := range r.Times {
		r.Times[i] = w.number(stampColumn + i)
	}
	for i := range r.Clocks {
		first := clockColumn + i*len(clockFields)
		r.Clocks[i] = Clock{
			Source: Source(
				row[first],
			), Offset: time.Duration(w.number(first + 1)), Bound: time.Duration(w.number(first + 2)),
			Uncertainty: time.Duration(w.number(first + 3)), Disagreement: time.Duration(w.number(first + 4)),
		}
	}
	if w.err != nil {
		return Record{}, w.err
	}
	return r, r.check()
}
