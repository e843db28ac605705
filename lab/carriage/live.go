package carriage

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// live encodes clouds as they are captured. Its workers run until Close.
type live struct {
	recipe   recipe
	source   capture.Source
	tiler    pointcloud.Tiler
	splitter pointcloud.Splitter
	tiles    []pointcloud.Cloud
	points   int // of the current capture
	jobs     []Job
	workers  []*encoding
	wake     chan *encoding
	ended    sync.WaitGroup
	describe volumetric.Publication

	// The current capture: set before workers are woken, and read again after all have reported.
	capture *Capture
	taken   time.Time
	tiled   time.Time
	number  uint32
	wanted  func(Job) bool
	done    func(*Encoded)
	next    atomic.Int64
	busy    sync.WaitGroup
}

// encoding is the state of one worker.
type encoding struct {
	encoder codec.Encoder
	view    pointcloud.Cloud
	out     Encoded
	data    []byte
	err     error
}

// OpenLive opens a material that is encoded while it is captured, fps times per second, by the given number of workers;
// 0 means one per processor. OpenLive reads one capture, so that a failing source or codec is reported here.
func OpenLive(ctx context.Context, m Material, fps float64, workers int) (Feed, error) {
	l, err := openLive(ctx, wallclock.Clock{}, m, fps, workers)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func openLive(ctx context.Context, clock capture.Clock, m Material, fps float64, workers int) (*live, error) {
	r, err := m.read()
	if err != nil {
		return nil, err
	}
	source, err := r.open(clock, fps)
	if err != nil {
		return nil, err
	}
	l := &live{recipe: r, source: source, wake: make(chan *encoding)}
	if l.tiler, err = r.tiling.Open(source.Info().Box); err != nil {
		_ = source.Close()
		return nil, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	l.tiles = make([]pointcloud.Cloud, l.tiler.Len())
	// The highest quality of a tile is encoded first, because its encoding is the longest.
	for q := len(r.levels) - 1; q >= 0; q-- {
		for tile := range l.tiles {
			l.jobs = append(l.jobs, Job{tile, volumetric.Quality(q)})
		}
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for range min(workers, len(l.jobs)) {
		w := &encoding{encoder: r.codec.NewEncoder()}
		l.workers = append(l.workers, w)
		l.ended.Go(func() {
			for w := range l.wake {
				l.work(w)
				l.busy.Done()
			}
		})
	}
	// The first capture yields the tiles, and shows whether all tiles can be encoded.
	var first Capture
	bytes := make([]atomic.Int64, len(r.levels))
	if err = l.Read(ctx, &first); err == nil {
		err = l.Encode(&first, 0, func(Job) bool { return true },
			func(e *Encoded) { bytes[e.Frame.Quality].Add(int64(len(e.Frame.Data) + EnvelopeSize)) })
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	rate := source.Info().FrameRate
	l.describe = describe(r.codec.FourCC(), rate, l.tiler.Tiles())
	for q, level := range r.levels {
		l.describe.Qualities = append(l.describe.Qualities, volumetric.QualityLevel{Name: level.Name,
			Bitrate: nominal(int(bytes[q].Load()), len(l.tiles), rate)})
	}
	return l, nil
}

// Publication implements Feed.
func (l *live) Publication() volumetric.Publication { return l.describe }

// Read implements Feed.
func (l *live) Read(ctx context.Context, c *Capture) error {
	if err := l.source.Read(ctx, &c.frame); err != nil {
		return err
	}
	c.At, c.Acquired, c.Missed = c.frame.Capture, wallclock.Now(), c.frame.Skipped
	return nil
}

// Encode implements Feed.
func (l *live) Encode(c *Capture, number uint32, wanted func(Job) bool, done func(*Encoded)) error {
	l.taken = wallclock.Now()
	if err := l.splitter.Split(l.tiler, &c.frame.Cloud, l.tiles); err != nil {
		return err
	}
	l.capture, l.number, l.wanted, l.done, l.tiled = c, number, wanted, done, wallclock.Now()
	l.points = c.frame.Cloud.Len()
	l.next.Store(0)
	l.busy.Add(len(l.workers))
	for _, w := range l.workers {
		l.wake <- w
	}
	l.busy.Wait()
	var err error
	for _, w := range l.workers {
		err = cmp.Or(err, w.err)
		w.err = nil
	}
	return err
}

// work does jobs of the capture until none is left.
func (l *live) work(w *encoding) {
	for {
		i := int(l.next.Add(1)) - 1
		if i >= len(l.jobs) {
			return
		}
		if job := l.jobs[i]; l.wanted(job) {
			if err := l.do(w, job); err != nil && w.err == nil {
				w.err = fmt.Errorf("tile %d, quality %q: %w", job.Tile, l.recipe.levels[job.Quality].Name, err)
			}
		}
	}
}

func (l *live) do(w *encoding, job Job) error {
	e := &w.out
	*e = Encoded{}
	l.capture.begin(&e.Record, l.taken)
	e.Record.Set(frametimes.Tiled, l.tiled)
	e.Record.Set(frametimes.EncodingBegan, wallclock.Now())
	level := l.recipe.levels[job.Quality]
	w.view = l.tiles[job.Tile].View(0, part(level, l.points, l.tiles[job.Tile].Len()))
	var err error
	if w.data, err = w.encoder.Encode(w.data[:0], &w.view, l.recipe.params(level, l.source.Info().Box)); err != nil {
		return err
	}
	e.Record.Set(frametimes.Encoded, wallclock.Now())
	e.Frame = Frame{Tile: job.Tile, Quality: job.Quality, Number: l.number, Codec: l.recipe.codec.FourCC(),
		Capture: l.capture.At, Data: w.data}
	l.done(e)
	return nil
}

// part returns the number of a tile's points at a quality. Points are in random order, so the first points are an even
// sample. A tile with points keeps at least one point.
func part(level ladder.Level, points, tile int) int {
	if tile == 0 {
		return 0
	}
	return min(tile, max(1, int(level.Portion(points)*float64(tile)+0.5)))
}

// Close implements Feed.
func (l *live) Close() error {
	close(l.wake)
	l.ended.Wait()
	return l.source.Close()
}
