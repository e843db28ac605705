// Package save writes shown frames as PLY files. One goroutine writes. If the goroutine is behind, frames are dropped
// and counted, so that showing is never delayed.
package save

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Frame is one shown frame. The clouds must not be modified later.
type Frame struct {
	Participant, Publication string
	Number                   int64
	Clouds                   []*pointcloud.Cloud
}

// Name returns the name of the frame's file. The names of participants and publications may contain any printable
// character; all bytes except letters, digits, - and _ are written as %XX.
func (f *Frame) Name() string {
	return fmt.Sprintf("%s.%s.%08d.ply", volumetric.FileName(f.Participant),
		volumetric.FileName(f.Publication), f.Number)
}

// Writer writes frames into a folder.
type Writer struct {
	dir    string
	log    *slog.Logger
	frames chan Frame
	done   sync.WaitGroup

	written, dropped atomic.Int64
}

// backlog is the number of frames that may wait: 0.2 s of one publication at 30 per second.
const backlog = 6

// NewWriter creates the folder if necessary and starts the writing goroutine.
func NewWriter(dir string, log *slog.Logger) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, log: log, frames: make(chan Frame, backlog)}
	w.done.Go(w.run)
	return w, nil
}

// Write queues a frame. If the queue is full, the frame is dropped.
func (w *Writer) Write(f Frame) {
	select {
	case w.frames <- f:
	default:
		w.dropped.Add(1)
	}
}

// Close waits until all queued frames are written. Write must not be called later.
func (w *Writer) Close() {
	close(w.frames)
	w.done.Wait()
}

// Counts returns the number of written frames, and the number of frames dropped because the queue was full or writing
// failed.
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

// File writes a file under a temporary name and renames it, so that no reader sees a partial file. content writes the
// data.
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
