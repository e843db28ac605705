// Package produce turns captured clouds into the frames of a publication. The newest capture is cut into tiles; the
// tiles are sampled and encoded at all qualities in parallel; each tile is handed over once encoded. If the encoder is
// behind, captures are dropped and counted. Frame numbers count encoded captures and have no gaps. A tile is not
// encoded at a quality that no receiver takes or that the network cannot carry. When the tile is wanted again, the next
// capture includes the tile.
//
// One goroutine captures. Another encodes, with a fixed number of workers. Both end before Run returns. A Producer is
// owned by the goroutine of Run, except for Counts, which is safe for concurrent use.
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

// Errors of producing. The errors are wrapped with the reason.
var (
	ErrConfig = errors.New("invalid encoding settings")
	ErrSource = errors.New("the source has no more frames")
)

// Source is a source of clouds. capture.Source implements it.
type Source interface {
	Info() capture.Info
	Read(ctx context.Context, frame *capture.Frame) error
}

// Sink accepts encoded tiles. *client.Publisher implements it. Several goroutines call WriteFrame concurrently, but the
// frames of one tile at one quality arrive in the order of the numbers. The sink may use the data only during the call.
// An error that wraps client.ErrNotConnected counts the tile as unsent; any other error ends the production. A tile
// that is not taken counts as paused or given up.
type Sink interface {
	WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (taken bool, err error)
	// Wanted reports whether a tile is to be encoded at a quality now. GaveUp reports whether the network cannot carry
	// the tile at that quality.
	Wanted(tile int, quality volumetric.Quality) bool
	GaveUp(tile int, quality volumetric.Quality) bool
}

// Config describes how captures are encoded.
type Config struct {
	// Tiling describes how captures are cut into tiles.
	Tiling pointcloud.TilingSpec
	// Importance weighs the points that reduced qualities keep, in volumetric.ModeAlternatives. If Importance is nil,
	// reduced qualities are even samples.
	Importance *pointcloud.ImportanceConfig
	// Voxels makes reduced qualities of voxels, in volumetric.ModeAlternatives. The voxel size is chosen for about the
	// number of points of the quality.
	Voxels bool
	// Levels are the qualities of a codec of clouds, in ascending order.
	Levels []ladder.Level
	// Rasters describes tiles and qualities of a codec of rasters, which needs frames with rasters; nil for codecs of
	// clouds. Tiling, Importance, Voxels, Levels and ColorQuality are then unused.
	Rasters *Rasters
	Mode    volumetric.Mode
	Codec   codec.Codec
	// ColorQuality is the quality of lossy colour coding; see codec.Params.
	ColorQuality int
	// Limit is the time from capture to the end of encoding. A tile that would end later is not encoded. 0 means three
	// frame intervals of the source, and at least 50 ms.
	Limit time.Duration
	// Box contains every point. All tiles and qualities are quantised in Box.
	Box volumetric.BoundingBox
	// Workers is the number of tiles that are encoded concurrently. 0 means one per processor.
	Workers int
	// Log receives errors of single captures. nil disables logging.
	Log *slog.Logger
}

// qualities returns the number of qualities.
func (c *Config) qualities() int {
	if c.Rasters != nil {
		return len(c.Rasters.Levels)
	}
	return len(c.Levels)
}

// qualityName returns the name of a quality.
func (c *Config) qualityName(quality int) string {
	if c.Rasters != nil {
		return c.Rasters.Levels[quality].Name
	}
	return c.Levels[quality].Name
}

const (
	// limitIntervals is the default of Config.Limit in frame intervals: 100 ms at 30 per second, of the minimum of 150
	// ms for which receivers wait. If encoding takes two intervals, one interval is left for waiting, and half of the
	// captures are encoded completely.
	limitIntervals = 3
	// leastLimit is the scheduling delay that any program may see on a busy machine.
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

// New returns a producer and starts the workers. Measure checks whether the codec can encode the source with this
// configuration.
func New(source Source, c Config) (*Producer, error) {
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if n := c.qualities(); n == 0 || n > volumetric.MaxQualities {
		return nil, fmt.Errorf("%w: %d qualities, expected 1 to %d", ErrConfig, n, volumetric.MaxQualities)
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

// Close ends the workers. Close must not be called during Run.
func (p *Producer) Close() { p.encoder.close() }

// Measure encodes one frame of the source, which is not handed over. Measure returns the description of the
// publication: the tiles, and the qualities with nominal bitrates. Errors of the source and of the codec are returned.
func (p *Producer) Measure(ctx context.Context) ([]volumetric.Tile, []volumetric.QualityLevel, error) {
	var frame capture.Frame
	if err := p.source.Read(ctx, &frame); err != nil {
		return nil, nil, err
	}
	rate := p.source.Info().FrameRate
	if err := p.encoder.split(&frame); err != nil {
		return nil, nil, err
	}
	if err := p.encoder.tune(&frame, rate); err != nil {
		return nil, nil, err
	}
	if outcome := p.encoder.encode(&frame, time.Time{}, 0, nowhere{}); outcome.err != nil {
		return nil, nil, outcome.err
	}
	p.encoder.order()
	return p.encoder.describe(), p.encoder.bitrates(rate), nil
}

// maxFailures is the number of consecutive captures that may fail: one second at 30 per second. A file that has become
// unreadable stays so.
const maxFailures = 30

// Run produces until the context ends, which is not an error, or until the source or the sink fails permanently. Run
// begins with the next capture; captures that fell due earlier are not counted.
func (p *Producer) Run(ctx context.Context, sink Sink) error {
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	newest := newMailbox[captured]()
	// One frame is being read, one frame waits and one frame is being encoded.
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

// captured is a frame with the time at which the source returned it.
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
		// The capture is counted before the hand-over, so that a published frame is always counted as captured.
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
