// Package produce turns captured clouds into the frames of a publication: the newest capture is cut into tiles, these
// are sampled and encoded at all qualities in parallel, and each is handed over as soon as it is done. Where the
// encoder is behind, captures are dropped and counted, and frame numbers have no gaps all the same: they count what is
// encoded. Tiles are not encoded at qualities that nobody takes, or that the network cannot carry; once they are wanted
// again, the next capture has them.
//
// One goroutine captures, one encodes with the help of a fixed number of workers; both end before Run returns. A
// Producer belongs to the goroutine that runs it, but for its statistics, which anybody may ask for.
package produce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of producing. They are wrapped with what was wrong.
var (
	ErrConfig = errors.New("invalid production")
	ErrSource = errors.New("source gives no more frames")
)

// Source is where clouds come from; capture.Source is one.
type Source interface {
	Info() capture.Info
	Read(ctx context.Context, frame *capture.Frame) error
}

// Sink takes encoded tiles; *client.Publisher is one. Several goroutines call it at once, but the frames of one tile at
// one quality come in the order of their numbers. The data is the sink's only during the call. An error around
// client.ErrNotConnected counts the tile as unsent, any other ends the production; one that is not taken counts as
// paused, or as given up.
type Sink interface {
	WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (taken bool, err error)
	// Wanted tells whether a tile is to be encoded at a quality now, and GaveUp whether it is not because the network
	// cannot carry it.
	Wanted(tile int, quality volumetric.Quality) bool
	GaveUp(tile int, quality volumetric.Quality) bool
}

// Config says what is made of the captures.
type Config struct {
	// Tiling says how captures are cut into tiles.
	Tiling pointcloud.TilingSpec
	// Importance weighs the points that qualities with fewer than all of them keep, in volumetric.ModeAlternatives; nil
	// keeps even samples.
	Importance *pointcloud.ImportanceConfig
	// Voxels has qualities with fewer points than all made of voxels, as large as gives about so many, in
	// volumetric.ModeAlternatives.
	Voxels bool
	// Levels are the qualities, ascending.
	Levels []ladder.Level
	Mode   volumetric.Mode
	Codec  codec.Codec
	// ColorQuality is that of colours that are coded with loss: see codec.Params.
	ColorQuality int
	// Limit is how long after its capture a frame is to be encoded: what will not be done by then is not begun. 0 is
	// three of the source's frame intervals, and 50 ms at least.
	Limit time.Duration
	// Box holds every point; all tiles and qualities are quantised in it.
	Box volumetric.BoundingBox
	// Workers is how many tiles are encoded at once; 0 is one per processor.
	Workers int
	// Log takes what goes wrong with single captures; nil is silence.
	Log *slog.Logger
}

const (
	// limitIntervals is how many frame intervals after its capture a frame is to be encoded: at 30 per second 100 ms,
	// of the 150 ms that receivers wait for it at least. Where encoding takes two of them, one is left to wait for it,
	// and half of the captures are encoded whole.
	limitIntervals = 3
	// leastLimit is what a busy machine may keep any program waiting now and then.
	leastLimit = 50 * time.Millisecond
)

// Producer produces the frames of one publication.
type Producer struct {
	encoder *encoder
	source  Source
	log     *slog.Logger
	number  uint32

	mu     sync.Mutex
	counts Counts
}

// New makes a producer and starts its workers. The configuration's codec must encode a cloud of the source as it says,
// which Measure finds out.
func New(source Source, c Config) (*Producer, error) {
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if len(c.Levels) == 0 || len(c.Levels) > volumetric.MaxQualities {
		return nil, fmt.Errorf("%w: %d qualities, expected 1 to %d", ErrConfig, len(c.Levels), volumetric.MaxQualities)
	}
	if rate := source.Info().FrameRate; c.Limit == 0 && rate > 0 {
		c.Limit = max(leastLimit, time.Duration(limitIntervals*float64(time.Second)/rate))
	}
	encoder, err := newEncoder(c)
	if err != nil {
		return nil, err
	}
	return &Producer{encoder: encoder, source: source, log: c.Log}, nil
}

// Close ends the workers. It is called once no Run is under way.
func (p *Producer) Close() { p.encoder.close() }

// Measure encodes a frame of the source without handing it over, to describe the publication: its tiles, and its
// qualities with their nominal bitrates. It shows, too, whether source and codec work.
func (p *Producer) Measure(ctx context.Context) ([]volumetric.Tile, []volumetric.QualityLevel, error) {
	var frame capture.Frame
	if err := p.source.Read(ctx, &frame); err != nil {
		return nil, nil, err
	}
	rate := p.source.Info().FrameRate
	if err := p.encoder.cutter.split(&frame.Cloud); err != nil {
		return nil, nil, err
	}
	if err := p.encoder.tune(&frame.Cloud, rate); err != nil {
		return nil, nil, err
	}
	if outcome := p.encoder.encode(&frame, time.Time{}, 0, nowhere{}); outcome.err != nil {
		return nil, nil, outcome.err
	}
	p.encoder.order()
	return p.encoder.cutter.tiler.Tiles(), p.encoder.bitrates(rate), nil
}

// maxFailures is how many captures may fail in a row: one second's at 30 per second. A file that cannot be read any
// more stays so.
const maxFailures = 30

// Run produces until the context ends, which is no error, or until the source or the sink fails for good. It begins
// with the next capture; what fell due before does not count.
func (p *Producer) Run(ctx context.Context, sink Sink) error {
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	newest := newMailbox[captured]()
	// One frame is being read, one waits, one is being encoded.
	free := make(chan *capture.Frame, 3)
	for range cap(free) {
		free <- new(capture.Frame)
	}
	var capturing sync.WaitGroup
	capturing.Go(func() { cancel(p.capture(ctx, newest, free)) })
	defer capturing.Wait()
	for {
		c, err := newest.take(ctx)
		if err != nil {
			if outer.Err() != nil {
				return nil
			}
			return context.Cause(ctx)
		}
		if err := p.encode(c, sink); err != nil {
			cancel(nil)
			return err
		}
		free <- c.frame
	}
}

// captured is a frame and when the source gave it.
type captured struct {
	frame *capture.Frame
	at    time.Time
}

// capture reads the source until the context ends.
func (p *Producer) capture(ctx context.Context, newest *mailbox[captured], free chan *capture.Frame) error {
	failures := 0
	for first := true; ; first = false {
		frame := <-free
		err := p.source.Read(ctx, frame)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, capture.ErrClosed):
			return fmt.Errorf("%w: %w", ErrSource, err)
		case err != nil:
			free <- frame
			if failures++; failures == maxFailures {
				return fmt.Errorf("%w: %w", ErrSource, err)
			}
			p.log.Warn("capture failed", "error", err)
			p.count(func(c *Counts) { c.Captured++; c.Dropped.Failed++ })
			continue
		}
		failures = 0
		missed := frame.Skipped
		if first {
			missed = 0
		}
		// Before it is handed over: what is counted as published is counted as captured.
		p.count(func(c *Counts) {
			c.Captured += 1 + missed
			c.Dropped.Missed += missed
		})
		if older, replaced := newest.put(captured{frame, time.Now()}); replaced {
			free <- older.frame
			p.count(func(c *Counts) { c.Dropped.Replaced++ })
		}
	}
}

// encode encodes one capture under the next frame number.
func (p *Producer) encode(frame captured, sink Sink) error {
	start := time.Now()
	outcome := p.encoder.encode(frame.frame, frame.at, p.number, sink)
	took := time.Since(start)
	if outcome.err != nil {
		return outcome.err
	}
	published := outcome.sent+outcome.unsent > 0
	if published {
		p.number++
	}
	p.count(func(c *Counts) {
		c.Paused += int64(outcome.paused)
		c.GivenUp += int64(outcome.gaveUp)
		c.Saved += int64(outcome.saved)
		c.Late += int64(outcome.late)
		switch {
		case published:
		case outcome.dropped || outcome.late > 0:
			c.Dropped.Late++
			return
		default:
			c.Idle++
			return
		}
		c.Published++
		c.Sent += int64(outcome.sent)
		c.Unsent += int64(outcome.unsent)
		c.Points += int64(outcome.points)
		c.Bytes += int64(outcome.bytes)
		c.Encode.Add(took)
	})
	return nil
}
