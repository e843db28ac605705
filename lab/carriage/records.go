package carriage

import (
	"bufio"
	"errors"
	"os"
	"sync"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

// Records writes the times of frames. It is safe for concurrent use. A nil Records discards the times.
type Records struct {
	mu     sync.Mutex
	file   *os.File
	buffer *bufio.Writer
	lines  *frametimes.JSONLWriter
	err    error
}

// recordBuffer has room for some hundred lines, so that only every few frames need a system call.
const recordBuffer = 64 << 10

// CreateRecords creates a file that must not exist yet. An empty path yields nil.
func CreateRecords(path string) (*Records, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	r := &Records{file: file, buffer: bufio.NewWriterSize(file, recordBuffer)}
	r.lines = frametimes.NewJSONLWriter(r.buffer)
	return r, nil
}

// Write adds a record. Close returns the first error.
func (r *Records) Write(record *frametimes.Record) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.lines.Write(record)
	}
}

// Close ends the file.
func (r *Records) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.buffer.Flush(), r.file.Close())
}
