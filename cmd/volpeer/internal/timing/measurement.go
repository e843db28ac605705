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

// Measurement is what the flags about times of frames say, and the recorder that they ask for. It belongs to one
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
	f.StringVar(&t.file, "frame-times", "", "file for what is known of each tile frame's way, as JSON lines, or as "+
		"CSV where its name ends in .csv")
	f.BoolVar(&t.layers, "layers", false, "measure where the time of frames goes, and sum it up at the end; "+
		"--frame-times and --metrics-listen do so, too")
	f.StringVar(&t.metrics, "metrics-listen", "",
		"address to serve metrics for Prometheus at, as HOST:PORT; without, none are")
}

// Wanted reports whether frames are to be traced.
func (t *Measurement) Wanted() bool { return t.layers || t.file != "" || t.metrics != "" }

// Open prepares to take records.
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

// Follow takes the records of a session until it ends.
func (t *Measurement) Follow(session *client.Session) {
	if t.recorder != nil {
		t.running.Go(func() { t.recorder.Run(session.FrameTimes()) })
	}
}

// Sum waits for the end of the session that was followed, and sums up; nil if nothing was measured.
func (t *Measurement) Sum() *summary.Layers {
	if t.recorder == nil {
		return nil
	}
	t.running.Wait()
	return t.recorder.Layers()
}

// lastScrape is how long a scrape of metrics under way may still take at the end.
const lastScrape = time.Second

// Close ends what Open began.
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
