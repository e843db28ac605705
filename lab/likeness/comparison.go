package likeness

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/lab/visual"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ErrNothing says that there is nothing to compare.
var ErrNothing = errors.New("no frame was decoded")

// Config says what is compared.
type Config struct {
	// Open opens the source of the run on a clock of its own.
	Open func(capture.Clock) (capture.Source, error)
	// Received are the frames that came of a source.
	Received func(capture.Info) Received
	// View is where to look from, given the source and the time since its first frame.
	View func(capture.Info, time.Duration) render.View
	// From and Until bound the captured frames by their time since the source's first. Until of 0 goes on to the last
	// that was decoded; else frames that are missing after that one count, too, as repeating it.
	From, Until time.Duration
	// Every takes every so many frames.
	Every         int
	Width, Height int
	// Film, if not nil, takes both pictures of each frame, at so many frames per second as are compared.
	Film func(fps float64) (Film, error)
}

// Received are the frames that came and were decoded, by the number of the capture that they show.
type Received interface {
	// Last is the highest number, negative where there is none.
	Last() int64
	Has(number int64) bool
	// Make replaces a cloud by what was decoded of a frame that there is, given what was captured.
	Make(into *pointcloud.Cloud, number int64, captured *pointcloud.Cloud) error
}

// Film takes pictures.
type Film interface {
	Write(captured, shown *image.RGBA) error
}

// Score is what became of one captured frame.
type Score struct {
	// Number is the captured frame's, from 0.
	Number int64 `json:"number"`
	// Shown is the number of the captured frame that was shown in its time: its own, or that of an earlier one where it
	// was not decoded.
	Shown int64 `json:"shown"`
	// PSNR is that of the luma in dB, SSIM that of the luma up to 1.
	PSNR float64 `json:"psnr_db"`
	SSIM float64 `json:"ssim"`
}

// Repeats tells whether the frame is missing, and an earlier one stands in for it.
func (s *Score) Repeats() bool { return s.Shown != s.Number }

// comparison is one under way.
type comparison struct {
	config   Config
	source   capture.Source
	received Received
	drawer   *render.Rasteriser
	film     Film
	captured capture.Frame
	shown    pointcloud.Cloud
	// number is that of the captured frame that shown was, -1 while nothing was.
	number   int64
	pictures [2]*image.RGBA
	planes   [2]visual.Plane
}

// Compare draws and measures frame by frame. Before the first decoded frame nothing is shown, and nothing counts.
func Compare(ctx context.Context, config Config) (scores []Score, err error) {
	c := &comparison{config: config, number: -1}
	clock := &leaping{now: time.Unix(0, 0)}
	if c.source, err = config.Open(clock); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.source.Close()) }()
	c.received = config.Received(c.source.Info())
	last := c.received.Last()
	if last < 0 {
		return nil, ErrNothing
	}
	if config.Film != nil {
		if c.film, err = config.Film(c.source.Info().FrameRate / float64(config.Every)); err != nil {
			return nil, err
		}
	}
	c.drawer = render.NewRasteriser(config.Width, config.Height, 0)
	defer c.drawer.Close()
	for {
		if err := c.source.Read(ctx, &c.captured); err != nil {
			return nil, err
		}
		if c.over(last) {
			break
		}
		score, counts, err := c.frame()
		if err != nil {
			return nil, err
		}
		if counts {
			scores = append(scores, score)
		}
	}
	return scores, nil
}

// over tells whether the captured frame comes after those that are compared, given the last one that was decoded.
func (c *comparison) over(last int64) bool {
	if c.config.Until > 0 {
		return c.since() >= c.config.Until
	}
	return c.captured.Number > last
}

// since is the captured frame's time since the source's first.
func (c *comparison) since() time.Duration {
	return time.Duration(float64(c.captured.Number) / c.source.Info().FrameRate * float64(time.Second))
}

// frame compares the captured frame with what was shown in its time. It tells false where it does not count.
func (c *comparison) frame() (Score, bool, error) {
	counts := c.since() >= c.config.From && c.captured.Number%int64(c.config.Every) == 0
	// A frame that a later one repeats may be one that does not count itself.
	if number := c.captured.Number; c.received.Has(number) && (counts || !c.received.Has(number+1)) {
		if err := c.received.Make(&c.shown, number, &c.captured.Cloud); err != nil {
			return Score{}, false, err
		}
		c.number = number
	}
	if !counts || c.number < 0 {
		return Score{}, false, nil
	}
	view := c.config.View(c.source.Info(), c.since())
	for i, cloud := range []*pointcloud.Cloud{&c.captured.Cloud, &c.shown} {
		c.drawer.Draw(view, []render.Layer{{Cloud: cloud}})
		c.pictures[i] = c.drawer.Image(c.pictures[i])
		c.planes[i].Luma(c.pictures[i])
	}
	if c.film != nil {
		if err := c.film.Write(c.pictures[0], c.pictures[1]); err != nil {
			return Score{}, false, fmt.Errorf("film: %w", err)
		}
	}
	s := Score{Number: c.captured.Number, Shown: c.number}
	var err error
	if s.PSNR, err = visual.PSNR(&c.planes[0], &c.planes[1]); err != nil {
		return s, false, err
	}
	s.SSIM, err = visual.SSIM(&c.planes[0], &c.planes[1])
	return s, true, err
}

// leaping is a clock on which nobody waits.
type leaping struct{ now time.Time }

// Now implements capture.Clock.
func (l *leaping) Now() time.Time { return l.now }

// Wait implements capture.Clock.
func (l *leaping) Wait(ctx context.Context, until time.Time) error {
	if until.After(l.now) {
		l.now = until
	}
	return ctx.Err()
}
