package imagediff

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

// ErrNothing is returned if no frame was decoded.
var ErrNothing = errors.New("no frame was decoded")

// Config configures a comparison.
type Config struct {
	// Open opens the source of the run on the given clock.
	Open func(capture.Clock) (capture.Source, error)
	// Received returns the received frames of a source.
	Received func(capture.Info) Received
	// View returns the view, given the source and the time since its first frame.
	View func(capture.Info, time.Duration) render.View
	// From and Until bound the captured frames by their time since the first frame of the source. With an Until of 0,
	// the comparison ends with the last decoded frame. Otherwise frames after the last decoded frame also count, as
	// repetitions of it.
	From, Until time.Duration
	// Every selects every n-th frame.
	Every         int
	Width, Height int
	// Film, if not nil, opens a film of both pictures at the frame rate of the compared frames.
	Film func(fps float64) (Film, error)
}

// Received has the decoded frames by the number of their capture.
type Received interface {
	// Last returns the highest number, or a negative number if there is no frame.
	Last() int64
	Has(number int64) bool
	// Make replaces a cloud by the decoded cloud of a frame, given the captured cloud.
	Make(into *pointcloud.Cloud, number int64, captured *pointcloud.Cloud) error
}

// Film records pictures.
type Film interface {
	Write(captured, shown *image.RGBA) error
}

// Score is the result of one captured frame.
type Score struct {
	// Number is the number of the captured frame, from 0.
	Number int64 `json:"number"`
	// Shown is the number of the captured frame that was shown at the time of this frame: its own number, or the number
	// of an earlier frame if this frame was not decoded.
	Shown int64 `json:"shown"`
	// PSNR is the PSNR of the luma in dB, SSIM the SSIM of the luma, at most 1.
	PSNR float64 `json:"psnr_db"`
	SSIM float64 `json:"ssim"`
}

// Repeats reports whether the frame is missing and an earlier frame was shown instead.
func (s *Score) Repeats() bool { return s.Shown != s.Number }

// comparison is the state of Compare.
type comparison struct {
	config   Config
	source   capture.Source
	received Received
	drawer   *render.Rasteriser
	film     Film
	captured capture.Frame
	shown    pointcloud.Cloud
	// number is the number of the captured frame in shown, -1 before the first frame.
	number   int64
	pictures [2]*image.RGBA
	planes   [2]visual.Plane
}

// Compare draws and measures frame by frame. Frames before the first decoded frame are not counted.
func Compare(ctx context.Context, config Config) (scores []Score, err error) {
	c := &comparison{config: config, number: -1}
	clock := &instantClock{now: time.Unix(0, 0)}
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

// over reports whether the captured frame is after the compared interval. last is the last decoded frame.
func (c *comparison) over(last int64) bool {
	if c.config.Until > 0 {
		return c.since() >= c.config.Until
	}
	return c.captured.Number > last
}

// since returns the time of the captured frame since the first frame of the source.
func (c *comparison) since() time.Duration {
	return time.Duration(float64(c.captured.Number) / c.source.Info().FrameRate * float64(time.Second))
}

// frame compares the captured frame with the frame that was shown at its time. frame returns false if the captured
// frame does not count.
func (c *comparison) frame() (Score, bool, error) {
	counts := c.since() >= c.config.From && c.captured.Number%int64(c.config.Every) == 0
	// A frame that does not count is needed if a later frame repeats it.
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

// instantClock is a clock whose Wait returns immediately.
type instantClock struct{ now time.Time }

// Now implements capture.Clock.
func (l *instantClock) Now() time.Time { return l.now }

// Wait implements capture.Clock.
func (l *instantClock) Wait(ctx context.Context, until time.Time) error {
	if until.After(l.now) {
		l.now = until
	}
	return ctx.Err()
}
