package carriage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrPrepared reports an invalid file of prepared frames or an invalid preparation.
var ErrPrepared = errors.New("prepared frames")

// prepared plays frames of a journal in a loop from memory.
type prepared struct {
	describe volumetric.Publication
	fps      float64
	captures [][]journal.Tile
	clock    capture.Clock
	start    time.Time
	next     int64
	out      Encoded
}

// OpenPrepared opens a journal of encoded tiles (package journal), whose captures are played in a loop, fps times per
// second.
func OpenPrepared(path string, fps float64) (Feed, error) {
	p, err := openPrepared(wallclock.Clock{}, path, fps)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func openPrepared(clock capture.Clock, path string, fps float64) (*prepared, error) {
	if !(fps > 0 && fps <= capture.MaxFPS) {
		return nil, fmt.Errorf("%w: %g per second, expected above 0 and up to %d", ErrPrepared, fps, capture.MaxFPS)
	}
	reader, err := journal.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	head := reader.Head()
	if head.Content != journal.Encoded || head.Publication == nil {
		return nil, fmt.Errorf("%w: %s has %s, expected encoded tiles", ErrPrepared, path, head.Content)
	}
	p := &prepared{describe: *head.Publication, fps: fps, clock: clock}
	p.describe.Name, p.describe.FrameRate = publicationName, fps
	places := make(map[int64]int)
	for i, e := range reader.Entries() {
		var tile journal.Tile
		if err := reader.ReadTile(i, &tile); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		place, known := places[e.Number]
		if !known {
			place = len(p.captures)
			places[e.Number] = place
			p.captures = append(p.captures, nil)
		}
		p.captures[place] = append(p.captures[place], tile)
	}
	p.describe.Qualities = slices.Clone(p.describe.Qualities)
	for q := range p.describe.Qualities {
		p.describe.Qualities[q].Bitrate = p.rate(volumetric.Quality(q))
	}
	return p, nil
}

// rate returns the nominal rate of one tile at a quality: the mean over tiles and captures, with the envelope.
func (p *prepared) rate(q volumetric.Quality) volumetric.Bitrate {
	bytes := 0
	for _, tiles := range p.captures {
		for i := range tiles {
			if tiles[i].Quality == q {
				bytes += len(tiles[i].Data) + EnvelopeSize
			}
		}
	}
	return nominal(bytes, len(p.describe.Tiles)*len(p.captures), p.fps)
}

// nominal returns the rate of a tile whose given number of frames has the given number of bytes.
func nominal(bytes, frames int, fps float64) volumetric.Bitrate {
	return volumetric.Bitrate(8 * float64(bytes) / float64(frames) * fps)
}

// Publication implements Feed.
func (p *prepared) Publication() volumetric.Publication { return p.describe }

// due returns when a capture falls due, counted from the start, so that a late wake-up does not delay later captures.
func (p *prepared) due(number int64) time.Time {
	return p.start.Add(time.Duration(float64(number) * float64(time.Second) / p.fps))
}

// Read implements Feed.
func (p *prepared) Read(ctx context.Context, c *Capture) error {
	if p.start.IsZero() {
		p.start = p.clock.Now()
	}
	if err := p.clock.Wait(ctx, p.due(p.next)); err != nil {
		return err
	}
	number := p.next
	for now := p.clock.Now(); !p.due(number + 1).After(now); {
		number++
	}
	c.At, c.Acquired, c.Missed, c.index = p.due(number), p.clock.Now(), number-p.next,
		int(number%int64(len(p.captures)))
	p.next = number + 1
	return nil
}

// Encode implements Feed: the frames exist already.
func (p *prepared) Encode(c *Capture, number uint32, wanted func(Job) bool, done func(*Encoded)) error {
	taken := wallclock.Now()
	e := &p.out
	for i := range p.captures[c.index] {
		t := &p.captures[c.index][i]
		if !wanted(Job{t.Tile, t.Quality}) {
			continue
		}
		*e = Encoded{Frame: Frame{Tile: t.Tile, Quality: t.Quality, Number: number, Codec: t.Codec, Capture: c.At,
			Data: t.Data}}
		c.begin(&e.Record, taken)
		for _, stamp := range []frametimes.Stamp{frametimes.Tiled, frametimes.EncodingBegan, frametimes.Encoded} {
			e.Record.Set(stamp, taken)
		}
		done(e)
	}
	return nil
}

// Close implements Feed.
func (p *prepared) Close() error { return nil }
