package raster

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
)

// switchPace is the time between two switches: each of 4 tiles is switched about six times per second.
const switchPace = 40 * time.Millisecond

// switches makes a receiver switch single tiles at random between the default qualities. Every frame must decode.
func switches(ctx context.Context, b *bench) ([]claim.Line, error) {
	film, err := b.person(ctx, liveFrames)
	if err != nil {
		return nil, err
	}
	levels, err := ladder.ParseRasters(ladder.DefaultRasters)
	if err != nil {
		return nil, err
	}
	c, err := film.rasters(levels)
	if err != nil {
		return nil, err
	}
	l, err := openLive(ctx, film, 0)
	if err != nil {
		return nil, err
	}
	defer l.close()
	random := rand.New(rand.NewPCG(1, 2))
	quality := make([]int, liveTiles)
	got, counts, err := l.show(ctx, c, func(ctx context.Context) error {
		for n := range b.options.Switches {
			if n > 0 && n%250 == 0 {
				b.progress.Say("  %d of %d switches", n, b.options.Switches)
			}
			tile := random.IntN(liveTiles)
			quality[tile] = (quality[tile] + 1 + random.IntN(len(levels)-1)) % len(levels)
			if err := l.watcher.SetQuality(ctx, signal.Choice{
				PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: liveName}, Tile: &tile,
				Quality: signal.Only(volumetric.Quality(quality[tile]))}); err != nil {
				return err
			}
			if err := lab.Pause(ctx, switchPace); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []claim.Line{
		claim.Information("switches requested", float64(b.options.Switches), ""),
		claim.Information("switches seen between decoded frames", float64(got.switched), ""),
		claim.Information("frames of tiles decoded", float64(got.decoded), ""),
		claim.Exactly("frames undecodable", got.failed+counts.Undecodable, "", 0),
		claim.Information("frames missing", float64(counts.Missing), ""),
	}, nil
}
