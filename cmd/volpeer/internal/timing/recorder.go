// Package timing records the frame times of a session: as lines of a file, as Prometheus metrics, and as layers for the
// summary. One goroutine runs Run. Layers may be called after Run has returned.
package timing

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// Recorder records frame times.
type Recorder struct {
	file   io.Closer
	buffer *bufio.Writer
	writer frametimes.Writer
	failed error
	log    *slog.Logger

	metrics *metrics
	layers  summary.LayerBook
}

// NewRecorder returns a recorder that writes to a file: CSV if the name ends in .csv, JSON lines otherwise. With an
// empty name no file is written. If registerer is not nil, metrics are registered.
func NewRecorder(name string, registerer prometheus.Registerer, log *slog.Logger) (*Recorder, error) {
	r := &Recorder{log: log}
	if registerer != nil {
		var err error
		if r.metrics, err = newMetrics(registerer); err != nil {
			return nil, err
		}
	}
	if name == "" {
		return r, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	r.file, r.buffer = file, bufio.NewWriter(file)
	if strings.HasSuffix(strings.ToLower(name), ".csv") {
		r.writer = frametimes.NewCSVWriter(r.buffer)
	} else {
		r.writer = frametimes.NewJSONLWriter(r.buffer)
	}
	return r, nil
}

// Run records until the channel is closed.
func (r *Recorder) Run(records <-chan frametimes.Record) {
	for record := range records {
		r.take(&record)
		// The file is flushed when the channel is empty: readers of the file see complete lines soon, and a burst costs
		// one write.
		if len(records) == 0 {
			r.flush()
		}
	}
	r.flush()
}

func (r *Recorder) take(record *frametimes.Record) {
	layers := record.Layers()
	r.layers.Add(record, &layers)
	if r.metrics != nil {
		r.metrics.observe(&layers)
	}
	if r.writer != nil && r.failed == nil {
		r.fail(r.writer.Write(record))
	}
}

func (r *Recorder) flush() {
	if r.buffer != nil && r.failed == nil {
		r.fail(r.buffer.Flush())
	}
}

// fail stores the first error.
func (r *Recorder) fail(err error) {
	if err != nil {
		r.failed = err
		r.log.Warn("frame times are no longer written", "error", err)
	}
}

// Close closes the file and returns the first error of writing. Close is called after Run has returned, or without Run.
func (r *Recorder) Close() error {
	if r.file == nil {
		return nil
	}
	err := errors.Join(r.failed, r.file.Close())
	r.file = nil
	if err != nil {
		return fmt.Errorf("write frame times: %w", err)
	}
	return nil
}

// Layers returns the statistics of the layers.
func (r *Recorder) Layers() *summary.Layers { return r.layers.Sum() }
