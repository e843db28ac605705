package stages

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
)

// ErrFormat is returned if the name of a log has an unknown extension.
var ErrFormat = errors.New("expected a name that ends with .jsonl or .csv")

// Log writes records to a file: one JSON object per line, or CSV with the same names in the header line.
type Log struct {
	mu     sync.Mutex
	file   *os.File
	buffer *bufio.Writer
	rows   *csv.Writer // nil for JSON
	row    []string
	err    error
}

// Create creates a log. The extension of the name selects the format.
func Create(name string) (*Log, error) {
	asRows := strings.HasSuffix(name, ".csv")
	if !asRows && !strings.HasSuffix(name, ".jsonl") {
		return nil, fmt.Errorf("%w, got %q", ErrFormat, name)
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	l := &Log{file: file, buffer: bufio.NewWriter(file)}
	if asRows {
		l.rows = csv.NewWriter(l.buffer)
		l.err = l.rows.Write(columns(reflect.TypeFor[Record](), nil))
	}
	return l, nil
}

// Write writes a record. Close returns the errors.
func (l *Log) Write(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if l.rows != nil {
		l.row = values(reflect.ValueOf(r).Elem(), l.row[:0])
		l.err = l.rows.Write(l.row)
		return
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = l.buffer.Write(append(line, '\n'))
	}
	l.err = err
}

// Close closes the file and returns the first error.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows != nil {
		l.rows.Flush()
		l.err = errors.Join(l.err, l.rows.Error())
	}
	return errors.Join(l.err, l.buffer.Flush(), l.file.Close())
}

// columns returns the names of a record's fields, as in JSON.
func columns(t reflect.Type, list []string) []string {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		switch {
		case t.Field(i).Anonymous:
			list = columns(t.Field(i).Type, list)
		case name != "-":
			list = append(list, name)
		}
	}
	return list
}

// values returns the values of these columns.
func values(v reflect.Value, list []string) []string {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch {
		case field.Anonymous:
			list = values(v.Field(i), list)
		case field.Tag.Get("json") != "-":
			list = append(list, fmt.Sprint(v.Field(i)))
		}
	}
	return list
}
