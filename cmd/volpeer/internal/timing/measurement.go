package timing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/pkg/client"
)

// Measurement has the flags of frame times and the recorder requested by the flags. A Measurement is owned by one
// goroutine.
type Measurement struct {
	file, metrics string
	layers        bool

	recorder *Recorder
	listener *Listener
	running  sync.WaitGroup
}

// Flags registers the flags.
func (t *Measurement) Flags(f *pflag.FlagSet) {
	f.StringVar(&t.file, "frame-times", "", "file for the times of each tile frame, as JSON lines, or as "+
		"CSV if its name ends in .csv")
	f.BoolVar(&t.layers, "layers", false, "measure the latency of frames by layer and print a summary at the end; "+
		"implied by --frame-times and --metrics-listen")
	f.StringVar(&t.metrics, "metrics-listen", "",
		"address of Prometheus metrics, HOST:PORT; by default no metrics are served")
}

// Wanted reports whether frames are to be traced.
func (t *Measurement) Wanted() bool { return t.layers || t.file != "" || t.metrics != "" }

// Open creates the listener and the recorder.
func (t *Measurement) Open(log *slog.Logger) (err error) {
	if !t.Wanted() {
		return nil
	}
	var registerer prometheus.Registerer
	if t.metrics != "" {
		if t.listener, err = Listen(t.metrics, log); err != nil {
			return fmt.Errorf("--metrics-listen: %w", err)
		}
		registerer = t.listener.Registerer()
	}
	if t.recorder, err = NewRecorder(t.file, registerer, log); err != nil {
		return errors.Join(fmt.Errorf("--frame-times: %w", err), t.Close())
	}
	return nil
}

// Follow records the frame times of a session until the session ends.
func (t *Measurement) Follow(session *client.Session) {
	if t.recorder != nil {
		t.running.Go(func() { t.recorder.Run(session.FrameTimes()) })
	}
}

// Sum waits for the end of the session passed to Follow and returns the layers; nil if latency was not measured.
func (t *Measurement) Sum() *summary.Layers {
	if t.recorder == nil {
		return nil
	}
	t.running.Wait()
	return t.recorder.Layers()
}

// lastScrape is the time limit for a metrics request that is active at the end.
const lastScrape = time.Second

// Close closes the recorder and the listener.
func (t *Measurement) Close() error {
	var errs []error
	if t.recorder != nil {
		t.running.Wait()
		errs = append(errs, t.recorder.Close())
	}
	if t.listener != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastScrape)
		defer cancel()
		errs = append(errs, t.listener.Close(ctx))
	}
	return errors.Join(errs...)
}
