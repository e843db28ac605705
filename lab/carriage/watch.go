package carriage

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/queue"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// WatchConfig configures the processing of arrivals.
type WatchConfig struct {
	// Tiles is the number of watched tiles; Quality is their initial quality.
	Tiles   int
	Quality volumetric.Quality
	// Decode enables decoding. Without Decode, frames count as decoded as soon as they are complete.
	Decode bool
	// DecoderQueue is the number of frames of each tile that wait for the decoder. Workers is the number of tiles
	// decoded in parallel; 0 is one per processor.
	DecoderQueue, Workers int
	// Display is the number of pictures per second for which decoded frames wait; 0 shows frames immediately.
	Display float64
	// Duration is the time of watching from the first frame on, 0 until the context ends. Patience is the time limit
	// for the first frame, and Idle the time limit between frames; 0 is no limit.
	Duration, Patience, Idle time.Duration
	// Decisions change the qualities of tiles.
	Decisions []Decision
	// Name is this peer's name, Of that of the watched peer.
	Name, Of string
	// Begun, if not nil, is called when the first frame has arrived.
	Begun func()
}

// DefaultWatch decodes the newest frame of each tile, and shows the frame immediately.
func DefaultWatch() WatchConfig {
	return WatchConfig{Tiles: 1, Decode: true, DecoderQueue: 1, Patience: time.Minute}
}

// Errors of watching.
var (
	ErrNothing = errors.New("no frame has arrived")
	errWatch   = errors.New("expected 1 tile or more, a decoder queue of 1 or more, and times and rates of 0 or more")
)

func (c *WatchConfig) validate() error {
	if c.Tiles < 1 || c.Tiles > volumetric.MaxTiles || c.DecoderQueue < 1 || c.Display < 0 || c.Duration < 0 ||
		c.Idle < 0 || c.Patience < 0 {
		return fmt.Errorf("watching %d tiles, queue %d, display %g, duration %v, patience %v, idle %v: %w",
			c.Tiles, c.DecoderQueue, c.Display, c.Duration, c.Patience, c.Idle, errWatch)
	}
	for i, d := range c.Decisions {
		if len(d.Qualities) != c.Tiles {
			return fmt.Errorf("decision %d: %w: %d qualities for %d tiles", i+1, ErrDecisions, len(d.Qualities),
				c.Tiles)
		}
	}
	return nil
}

// Watcher receives, decodes and shows frames. It is the Taker of an End.
type Watcher struct {
	config  WatchConfig
	end     End
	records *Records
	tiles   []*watchedTile
	// slots bounds the number of tiles decoded in parallel.
	slots   chan struct{}
	display display
	arrived chan struct{} // closed with the first frame

	mu          sync.Mutex
	counts      Received
	first, last time.Time // of the arrived frames
	samples     struct{ latency, decoded, arrived, receiving, wait, decoding, display sample }
	outcomes    []*outcome
}

// NewWatcher returns a watcher, or an error if the configuration is invalid.
func NewWatcher(end End, config WatchConfig, records *Records) (*Watcher, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Workers <= 0 {
		config.Workers = runtime.GOMAXPROCS(0)
	}
	w := &Watcher{config: config, end: end, records: records, slots: make(chan struct{}, config.Workers),
		arrived: make(chan struct{})}
	for range config.Tiles {
		w.tiles = append(w.tiles, &watchedTile{waiting: queue.New[*incoming](config.DecoderQueue),
			quality: config.Quality})
	}
	return w, nil
}

// Run decodes and shows arrivals until Duration is over, the context ends, or ended is closed, after which no more
// frames can arrive. None of these is an error; if no frame arrived, the error wraps ErrNothing.
func (w *Watcher) Run(ctx context.Context, ended <-chan struct{}) (*Received, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	for _, t := range w.tiles {
		running.Go(func() { w.decode(ctx, t) })
	}
	if w.config.Display > 0 {
		running.Go(func() { w.refresh(ctx) })
	}
	err := w.watch(ctx, ended, &running)
	stop()
	running.Wait()
	return w.summary(), err
}

// watch waits for the end. Frames taken before ended or before the silence are still decoded within lastFrames.
func (w *Watcher) watch(ctx context.Context, ended <-chan struct{}, running *sync.WaitGroup) error {
	var patience <-chan time.Time
	if w.config.Patience > 0 {
		timer := time.NewTimer(w.config.Patience)
		defer timer.Stop()
		patience = timer.C
	}
	var nothing error
	select {
	case <-w.arrived:
	case <-patience:
		nothing = fmt.Errorf("%w within %v", ErrNothing, w.config.Patience)
	case <-ended:
		nothing = fmt.Errorf("%w before the other end ended", ErrNothing)
	case <-ctx.Done():
		nothing = fmt.Errorf("%w: %w", ErrNothing, ctx.Err())
	}
	// An arrived frame counts, even if another event happened in the meantime.
	select {
	case <-w.arrived:
	default:
		return nothing
	}
	w.mu.Lock()
	begun := w.first
	w.mu.Unlock()
	if w.config.Begun != nil {
		w.config.Begun()
	}
	running.Go(func() { w.decide(ctx, begun) })
	limit, stop := limited(ctx, w.config.Duration)
	defer stop()
	silent := make(chan struct{})
	if w.config.Idle > 0 {
		running.Go(func() {
			if w.awaitSilence(limit) {
				close(silent)
			}
		})
	}
	select {
	case <-limit.Done():
	case <-silent:
		w.settle(ctx)
	case <-ended:
		w.settle(ctx)
	}
	return nil
}

// awaitSilence returns true when no frame has arrived for Idle, and false if the context ends before.
func (w *Watcher) awaitSilence(ctx context.Context) bool {
	for {
		w.mu.Lock()
		remaining := w.last.Add(w.config.Idle).Sub(wallclock.Now())
		w.mu.Unlock()
		if remaining <= 0 {
			return true
		}
		timer := time.NewTimer(remaining)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// settle waits until every frame that arrived has been decoded and shown, for at most lastFrames.
func (w *Watcher) settle(ctx context.Context) {
	for end := time.Now().Add(lastFrames); ctx.Err() == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		c := &w.counts
		busy := c.FramesReceived > c.FramesLate+c.FramesSkipped+c.FramesBunched+c.FramesUndecodable+c.FramesShown
		w.mu.Unlock()
		if !busy {
			return
		}
	}
}

// summary returns the counts.
func (w *Watcher) summary() *Received {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.counts
	expected, captures, rates := int64(0), int64(0), 0.0
	for _, t := range w.tiles {
		missing := t.numbers.missing()
		s.FramesMissing += missing
		expected += missing + t.numbers.count
		captures = max(captures, t.numbers.count)
		rates += t.rate()
	}
	// A damaged frame counts as a frame that did not arrive completely.
	if expected > 0 {
		s.Lost = 100 * float64(s.FramesMissing) / float64(expected)
	}
	s.FramesMissing = max(0, s.FramesMissing-s.FramesDamaged)
	s.FPS = rates / float64(len(w.tiles))
	s.Mbps = spanRate(w.end.Traffic().Received, w.first, w.last, captures)
	s.Latency, s.Decoded, s.Arrived = w.samples.latency.percentiles(), w.samples.decoded.percentiles(),
		w.samples.arrived.percentiles()
	s.Receiving, s.DecoderWait = w.samples.receiving.percentiles(), w.samples.wait.percentiles()
	s.Decoding, s.DisplayWait = w.samples.decoding.percentiles(), w.samples.display.percentiles()
	w.decided(&s)
	s.Begun = w.first
	if i, ok := w.end.(Informed); ok && !w.first.IsZero() {
		s.Estimates = i.Downlink(w.first)
	}
	return &s
}

// qualities returns the requested qualities.
func (w *Watcher) qualities() []volumetric.Quality {
	list := make([]volumetric.Quality, 0, len(w.tiles))
	for _, t := range w.tiles {
		list = append(list, t.quality)
	}
	return slices.Clip(list)
}
