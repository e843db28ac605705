package raster

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// liveFrames is the number of frames of live publications, which are repeated.
	liveFrames = 24
	// liveLoss is the share of lost packets on each link in each direction.
	liveLoss = 0.05
	// lossMargin is the share of frames by which both codecs may differ: the noise of some thousand frames.
	lossMargin = 0.5 // %
	// liveRate is the least number of frames per second that are decoded of a publication of 30.
	liveRate = 29.5
)

// total is the sum of the blocks of one codec.
type total struct {
	decoded, failed, expected, undecodable int64
	seconds                                float64
	latency                                lab.Distribution
}

// paired shows rgbd and draco in turn over links with a loss.
func paired(ctx context.Context, b *bench, loss float64) (rasters, clouds total, err error) {
	film, err := b.person(ctx, liveFrames)
	if err != nil {
		return rasters, clouds, err
	}
	drawn, err := film.rasters([]ladder.Raster{{Step: 0.00065, ColorQuality: 80}})
	if err != nil {
		return rasters, clouds, err
	}
	points, err := film.clouds()
	if err != nil {
		return rasters, clouds, err
	}
	for block := range b.options.Blocks {
		b.progress.Say("  block %d of %d", block+1, b.options.Blocks)
		if err := rasters.add(ctx, b, film, drawn, loss); err != nil {
			return rasters, clouds, err
		}
		if err := clouds.add(ctx, b, film, points, loss); err != nil {
			return rasters, clouds, err
		}
	}
	return rasters, clouds, nil
}

// add shows a content for a block.
func (t *total) add(ctx context.Context, b *bench, f *film, c content, loss float64) error {
	l, err := openLive(ctx, f, loss)
	if err != nil {
		return err
	}
	defer l.close()
	var lasted time.Duration
	got, counts, err := l.show(ctx, c, func(ctx context.Context) error {
		begun := time.Now()
		err := lab.Pause(ctx, b.options.Block)
		lasted = time.Since(begun)
		return err
	})
	if err != nil {
		return err
	}
	t.decoded += got.decoded
	t.failed += got.failed
	t.expected += counts.Expected
	t.undecodable += counts.Undecodable + counts.Missing
	t.seconds += lasted.Seconds()
	t.latency.Join(&got.latency)
	return nil
}

// decodable returns the share of expected frames that were complete, in percent.
func (t *total) decodable() float64 {
	return 100 * (1 - float64(t.undecodable+t.failed)/float64(max(1, t.expected)))
}

// losses measures both codecs with lost packets.
func losses(ctx context.Context, b *bench) ([]claim.Line, error) {
	rasters, clouds, err := paired(ctx, b, liveLoss)
	if err != nil {
		return nil, err
	}
	return []claim.Line{
		claim.Information("draco: frames of tiles", float64(clouds.expected), ""),
		claim.Information("draco: decodable", clouds.decodable(), "%"),
		claim.Information("rgbd: frames of tiles", float64(rasters.expected), ""),
		claim.AtLeast("rgbd: decodable, as draco", rasters.decodable(), "%", round(clouds.decodable()-lossMargin)),
		claim.Exactly("rgbd: complete frames that do not decode", rasters.failed, "", 0),
	}, nil
}

// latencies measures the time from a capture to the decoded points, and the frames per second.
func latencies(ctx context.Context, b *bench) ([]claim.Line, error) {
	rasters, clouds, err := paired(ctx, b, 0)
	if err != nil {
		return nil, err
	}
	ms := lab.Milliseconds
	return []claim.Line{
		claim.Information("draco: capture to decoded, p50", ms(clouds.latency.Percentile(0.5)), "ms"),
		claim.Information("draco: capture to decoded, p95", ms(clouds.latency.Percentile(0.95)), "ms"),
		claim.AtMost("rgbd: capture to decoded, p50, not above draco", ms(rasters.latency.Percentile(0.5)), "ms",
			ms(clouds.latency.Percentile(0.5))),
		claim.Information("rgbd: capture to decoded, p95", ms(rasters.latency.Percentile(0.95)), "ms"),
		claim.AtLeast("rgbd: frames decoded per second and tile", float64(rasters.decoded)/liveTiles/rasters.seconds,
			"fps", liveRate),
		claim.Information("draco: frames decoded per second and tile", float64(clouds.decoded)/liveTiles/clouds.seconds,
			"fps"),
		claim.Exactly("rgbd: frames undecodable or missing", rasters.failed+rasters.undecodable, "", 0),
	}, nil
}
