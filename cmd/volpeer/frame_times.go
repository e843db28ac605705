package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/timing"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// frameTimes is what the flags about times of frames say, and who takes them.
type frameTimes struct {
	file, metrics string
	layers        bool

	recorder *timing.Recorder
	listener *timing.Listener
	running  sync.WaitGroup
}

func (t *frameTimes) flags(f *pflag.FlagSet) {
	f.StringVar(&t.file, "frame-times", "", "file for what is known of each tile frame's way, as JSON lines, or as CSV where its name ends in .csv")
	f.BoolVar(&t.layers, "layers", false, "measure where the time of frames goes, and sum it up at the end; --frame-times and --metrics-listen do so, too")
	f.StringVar(&t.metrics, "metrics-listen", "", "address to serve metrics for Prometheus at, as HOST:PORT; without, none are")
}

// wanted tells whether frames are to be traced.
func (t *frameTimes) wanted() bool { return t.layers || t.file != "" || t.metrics != "" }

// open prepares to take records.
func (t *frameTimes) open(log *slog.Logger) (err error) {
	if !t.wanted() {
		return nil
	}
	var registerer prometheus.Registerer
	if t.metrics != "" {
		if t.listener, err = timing.Listen(t.metrics, log); err != nil {
			return fmt.Errorf("--metrics-listen: %w", err)
		}
		registerer = t.listener.Registerer()
	}
	if t.recorder, err = timing.NewRecorder(t.file, registerer, log); err != nil {
		return errors.Join(fmt.Errorf("--frame-times: %w", err), t.close())
	}
	return nil
}

// follow takes the records of a session until it ends.
func (t *frameTimes) follow(session *client.Session) {
	if t.recorder != nil {
		t.running.Go(func() { t.recorder.Run(session.FrameTimes()) })
	}
}

// sum waits for the end of the session that was followed, and sums up; nil where nothing was measured.
func (t *frameTimes) sum() *summary.Layers {
	if t.recorder == nil {
		return nil
	}
	t.running.Wait()
	return t.recorder.Layers()
}

// lastScrape is how long a scrape of metrics under way may still take at the end.
const lastScrape = time.Second

// close ends what open began.
func (t *frameTimes) close() error {
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

// clockOffsetVariable moves the clock of a process, for trials with clocks that disagree.
const clockOffsetVariable = "VOLSFU_CLOCK_OFFSET"

// errClock is wrapped with what was given.
var errClock = errors.New("expected estimated, system or ptp")

// clockSettings are where this host's time comes from, and by how much it is moved.
func clockSettings(source string) (frametimes.Source, time.Duration, error) {
	if source != "" && !frametimes.Source(source).Valid() {
		return "", 0, fmt.Errorf("--clock: %w, got %.32q", errClock, source)
	}
	text := os.Getenv(clockOffsetVariable)
	if text == "" {
		return frametimes.Source(source), 0, nil
	}
	shift, err := time.ParseDuration(text)
	if err != nil {
		return "", 0, fmt.Errorf("%s is %.32q, expected a time such as 50ms", clockOffsetVariable, text)
	}
	return frametimes.Source(source), shift, nil
}

// layersTable is a table for people.
func layersTable(l *summary.Layers) string {
	if l == nil || len(l.Layers) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "layers of %d tile frames, %d of them with every stage, in ms\n", l.Frames, l.Complete)
	fmt.Fprintf(&b, "  %-22s %9s %9s %9s %9s %9s %9s %11s\n", "", "mean", "median", "95 %", "99 %", "largest", "± at most", "± symmetric")
	for i := range l.Layers {
		r := &l.Layers[i]
		fmt.Fprintf(&b, "  %-22s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %11.3f\n", r.Name, r.Mean, *r.P50, *r.P95, *r.P99, *r.Max, r.Bound, r.Uncertainty)
	}
	for _, c := range l.Clocks {
		fmt.Fprintf(&b, "  clock of the %s: %s", c.Host, c.Source)
		if c.Source == frametimes.SourceEstimated {
			fmt.Fprintf(&b, ", %.0f µs added, ± %.0f µs at most, ± %.0f µs if the path is symmetric", c.Offset, c.Bound, c.Uncertainty)
		} else if c.Disagreement != 0 {
			fmt.Fprintf(&b, ", but the estimate finds it %.0f µs off, ± %.0f µs", -c.Disagreement, c.Bound-max(c.Disagreement, -c.Disagreement))
		}
		b.WriteByte('\n')
	}
	b.WriteString(hardwareLine(l))
	return b.String()
}

// hardwareLine says that network cards gave no stamps, where kernels did.
func hardwareLine(l *summary.Layers) string {
	kernel, hardware := false, false
	for i := range l.Layers {
		name := l.Layers[i].Name
		kernel = kernel || strings.HasSuffix(name, "_software")
		hardware = hardware || strings.HasSuffix(name, "_hardware")
	}
	switch {
	case hardware:
		return ""
	case kernel:
		return "  stamps of network cards: absent\n"
	default:
		return "  stamps of kernels and network cards: absent\n"
	}
}
