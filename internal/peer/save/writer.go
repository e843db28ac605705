// Package save writes shown frames as PLY files. One goroutine writes; where it is behind, frames are dropped and
// counted, so that showing is never delayed.
package save

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Frame is one shown frame. Its clouds must not change any more.
type Frame struct {
	Participant, Publication string
	Number                   int64
	Clouds                   []*pointcloud.Cloud
}

// Name is the name of the frame's file. Participants and publications may be called anything that is printable, so what
// file systems or shells may object to is written as %XX.
func (f *Frame) Name() string {
	return fmt.Sprintf("%s.%s.%08d.ply", escape(f.Participant), escape(f.Publication), f.Number)
}

func escape(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Writer writes frames into a folder.
type Writer struct {
	dir    string
	log    *slog.Logger
	frames chan Frame
	done   sync.WaitGroup

	written, dropped atomic.Int64
}

// backlog is how many frames may wait: a fifth of a second of one publication.
const backlog = 6

// NewWriter makes the folder where it is missing and starts to write.
func NewWriter(dir string, log *slog.Logger) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, log: log, frames: make(chan Frame, backlog)}
	w.done.Go(w.run)
	return w, nil
}

// Write queues a frame, or drops it where too many wait.
func (w *Writer) Write(f Frame) {
	select {
	case w.frames <- f:
	default:
		w.dropped.Add(1)
	}
}

// Close writes what waits. Nothing may be written afterwards.
func (w *Writer) Close() {
	close(w.frames)
	w.done.Wait()
}

// Counts are the frames written and those dropped, since too many waited or the disk refused them.
func (w *Writer) Counts() (written, dropped int64) { return w.written.Load(), w.dropped.Load() }

func (w *Writer) run() {
	var merged pointcloud.Cloud
	failed := false
	for f := range w.frames {
		merged.Reset()
		for _, c := range f.Clouds {
			merged.AppendCloud(c)
		}
		err := File(filepath.Join(w.dir, f.Name()),
			func(to io.Writer) error { return pointcloud.WritePLY(to, &merged, pointcloud.BinaryLittleEndian) })
		if err == nil {
			w.written.Add(1)
			failed = false
			continue
		}
		w.dropped.Add(1)
		if !failed {
			w.log.Warn("frame not saved", "error", err)
		}
		failed = true
	}
}

// File writes a file under another name first, so that nobody finds half of it; content writes what is in it.
func File(name string, content func(io.Writer) error) (err error) {
	file, err := os.Create(name + ".partial")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	err = content(file)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
