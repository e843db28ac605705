package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Writer writes a journal.
type Writer struct {
	file    *os.File
	content Content

	mu     sync.Mutex
	record []byte // memory of one record
	first  time.Time
	bytes  int64
	frames int64
	err    error // first failed write; records after it would be unreadable
}

// Create starts a journal in a file that must not exist.
func Create(path string, head Head) (*Writer, error) {
	payload, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if _, err := parseHead(payload); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	w := &Writer{file: file, content: head.Content}
	w.record = append(appendRecord([]byte(magic), kindHead), payload...)
	err = finish(w.record[len(magic):])
	if err == nil {
		err = w.write(w.record)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return w, nil
}

// WriteFrame appends a captured frame, or only its images in a journal of images. WriteFrame returns when the operating
// system has accepted the data.
func (w *Writer) WriteFrame(f *Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.content == Encoded {
		return fmt.Errorf("%w: a captured frame for a journal of encoded ones", ErrContent)
	}
	w.record = w.since(f.Number, f.Capture).append(appendRecord(w.record[:0], kindFrame))
	w.record = appendFrame(w.record, f)
	w.frames++
	return w.add()
}

// WriteTile appends an encoded tile. WriteTile returns when the operating system has accepted the data.
func (w *Writer) WriteTile(t *Tile) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.content != Encoded {
		return fmt.Errorf("%w: an encoded tile for a journal of %s", ErrContent, w.content)
	}
	w.record = w.since(int64(t.Number), t.Capture).append(appendRecord(w.record[:0], kindTile))
	w.record = appendTile(w.record, t)
	w.frames++
	return w.add()
}

// since returns the times of a capture. Differences use the monotonic clock if the capture time
// contains its reading.
func (w *Writer) since(number int64, capture time.Time) times {
	if w.first.IsZero() {
		w.first = capture
	}
	captured := capture.Sub(w.first)
	// If a capture time has no monotonic reading, a clock that was set could make the record time
	// precede the capture time.
	return times{
		number:   number,
		wall:     capture.UnixNano(),
		captured: int64(captured),
		written:  int64(max(captured, time.Since(w.first))),
	}
}

func (w *Writer) add() error {
	if w.err != nil {
		return w.err
	}
	if err := finish(w.record); err != nil {
		return err
	}
	w.err = w.write(w.record)
	return w.err
}

func (w *Writer) write(data []byte) error {
	n, err := w.file.Write(data)
	w.bytes += int64(n)
	return err
}

// Written returns the numbers of frames, or tiles, and bytes written.
func (w *Writer) Written() (frames, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.frames, w.bytes
}

// Sync returns when the written data would survive a loss of power. Writing may continue
// concurrently.
func (w *Writer) Sync() error { return w.file.Sync() }

// Close ends the journal.
func (w *Writer) Close() error { return errors.Join(w.file.Sync(), w.file.Close()) }
