// Package timing keeps what a session tells of the times of frames: as lines of a file, as metrics for Prometheus, and
// as layers for the summary. One goroutine takes the records, from Run's beginning to its end; the summary may be asked
// for afterwards.
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

// Recorder takes records.
type Recorder struct {
	file   io.Closer
	buffer *bufio.Writer
	writer frametimes.Writer
	failed error
	log    *slog.Logger

	metrics *metrics
	layers  summary.LayerBook
}

// NewRecorder makes a recorder that writes to a file of JSON lines, or of CSV where its name ends so; an empty name
// writes nothing. Metrics are registered where registerer is not nil.
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

// Run takes records until there are no more.
func (r *Recorder) Run(records <-chan frametimes.Record) {
	for record := range records {
		r.take(&record)
		// Who reads along sees whole lines soon, and a burst costs one write.
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

// fail keeps the first error.
func (r *Recorder) fail(err error) {
	if err != nil {
		r.failed = err
		r.log.Warn("times of frames are not written any more", "error", err)
	}
}

// Close closes the file, once Run has returned or was never called. It tells what went wrong with it.
func (r *Recorder) Close() error {
	if r.file == nil {
		return nil
	}
	err := errors.Join(r.failed, r.file.Close())
	r.file = nil
	if err != nil {
		return fmt.Errorf("times of frames: %w", err)
	}
	return nil
}

// Layers sums up what was taken.
func (r *Recorder) Layers() *summary.Layers { return r.layers.Sum() }
