package carriage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Preparation describes the frames to encode into a file.
type Preparation struct {
	Material
	// Output is the file, which must not exist yet. Count is the number of captures, FPS their rate per second.
	Output string
	Count  int
	FPS    float64
	// Sizes, if not empty, selects frames of random bytes instead, a tile of each size.
	Sizes []int
}

// DefaultPreparation is two seconds at 15 per second.
func DefaultPreparation() Preparation {
	return Preparation{Material: DefaultMaterial(), Count: 30, FPS: 15}
}

// maxPrepared bounds the number of prepared captures, which are played from memory.
const maxPrepared = 10_000

// randomCodec is the codec of random bytes, which has no decoder.
var randomCodec = volumetric.FourCC{'r', 'a', 'n', 'd'}

// PreparedQuality summarises the frames of one quality, all tiles together.
type PreparedQuality struct {
	Name string `json:"name"`
	// BytesPerCapture is the mean size of all tiles of one capture. Mbps is their rate at the rate of the preparation,
	// without any headers.
	BytesPerCapture float64 `json:"bytes_per_capture"`
	Mbps            float64 `json:"mbps"`
	// Encoding is the time to encode one tile, while as many tiles are encoded in parallel as there are processors.
	Encoding Percentiles `json:"encoding_ms"`
}

// Prepared is the result of Prepare.
type Prepared struct {
	Output   string  `json:"output"`
	Captures int     `json:"captures"`
	Tiles    int     `json:"tiles"`
	Points   int     `json:"points"`
	Codec    string  `json:"codec"`
	FPS      float64 `json:"fps"`
	// Seconds is the duration of the preparation.
	Seconds   float64           `json:"seconds"`
	Qualities []PreparedQuality `json:"qualities"`
}

// instantClock is a clock that advances immediately instead of waiting.
type instantClock struct{ now time.Time }

// Now implements capture.Clock.
func (c *instantClock) Now() time.Time { return c.now }

// Wait implements capture.Clock.
func (c *instantClock) Wait(ctx context.Context, until time.Time) error {
	if until.After(c.now) {
		c.now = until
	}
	return ctx.Err()
}

// Prepare encodes frames into a journal, as fast as possible.
func Prepare(ctx context.Context, p Preparation) (*Prepared, error) {
	if p.Output == "" || p.Count < 1 || p.Count > maxPrepared || !(p.FPS > 0) {
		return nil, fmt.Errorf("%w: %d captures at %g per second into %q, expected 1 to %d, a rate above 0, and a file",
			ErrPrepared, p.Count, p.FPS, p.Output, maxPrepared)
	}
	if len(p.Sizes) > 0 {
		return prepareRandom(ctx, p)
	}
	began := time.Now()
	feed, err := openLive(ctx, &instantClock{now: began}, p.Material, p.FPS, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	defer func() { _ = feed.Close() }()
	info := feed.source.Info()
	w, err := createPrepared(p, info.Description, feed.Publication())
	if err != nil {
		return nil, err
	}
	report := &Prepared{Output: p.Output, Captures: p.Count, Tiles: len(feed.tiles), Points: info.Points,
		Codec: p.Codec, FPS: p.FPS}
	if p.Points > 0 {
		report.Points = min(report.Points, p.Points)
	}
	err = encodeAll(ctx, p, feed, w, report)
	if closing := w.Close(); err == nil {
		err = closing
	}
	report.Seconds = time.Since(began).Seconds()
	return report, err
}

func createPrepared(p Preparation, description string, publication volumetric.Publication) (*journal.Writer, error) {
	return journal.Create(p.Output, journal.Head{
		Content: journal.Encoded, Description: description, Begun: time.Now(), FrameRate: p.FPS,
		Publication: &publication,
	})
}

// encodeAll encodes all captures, writes them in the order of tiles, and reports.
func encodeAll(ctx context.Context, p Preparation, feed *live, w *journal.Writer, report *Prepared) error {
	qualities := feed.Publication().Qualities
	bytes, times := make([]int64, len(qualities)), make([]sample, len(qualities))
	results := make(chan journal.Tile, len(feed.jobs))
	spent := make(chan frametimes.Record, len(feed.jobs))
	var c Capture
	for number := range p.Count {
		if err := feed.Read(ctx, &c); err != nil {
			return err
		}
		err := feed.Encode(&c, uint32(number), func(Job) bool { return true }, func(e *Encoded) {
			data := append([]byte(nil), e.Frame.Data...)
			results <- journal.Tile{Number: uint32(number), Capture: c.At, Tile: e.Frame.Tile, Quality: e.Frame.Quality,
				Codec: e.Frame.Codec, Data: data}
			spent <- frametimes.Record{Track: volumetric.TrackRef{Quality: e.Frame.Quality}, Times: e.Record.Times}
		})
		if err != nil {
			return err
		}
		for range feed.jobs {
			tile, record := <-results, <-spent
			bytes[tile.Quality] += int64(len(tile.Data))
			times[record.Track.Quality].between(&record, frametimes.EncodingBegan, frametimes.Encoded)
			if err := w.WriteTile(&tile); err != nil {
				return err
			}
		}
	}
	for q, level := range qualities {
		mean := float64(bytes[q]) / float64(p.Count)
		report.Qualities = append(report.Qualities, PreparedQuality{Name: level.Name, BytesPerCapture: mean,
			Mbps: mean * 8 * p.FPS / 1e6, Encoding: times[q].percentiles()})
	}
	return nil
}

// prepareRandom makes frames of random bytes.
func prepareRandom(ctx context.Context, p Preparation) (*Prepared, error) {
	began := time.Now()
	tiles := make([]volumetric.Tile, len(p.Sizes))
	total := 0
	for _, size := range p.Sizes {
		if size < 0 || size > MaxFrameBytes-EnvelopeSize {
			return nil, fmt.Errorf("%w: a tile of %d bytes, expected 0 to %d", ErrPrepared, size,
				MaxFrameBytes-EnvelopeSize)
		}
		total += size
	}
	publication := describe(randomCodec, p.FPS, tiles)
	publication.Qualities = []volumetric.QualityLevel{{Name: "only"}}
	w, err := createPrepared(p, "random bytes", publication)
	if err != nil {
		return nil, err
	}
	source := rand.NewChaCha8([32]byte{byte(p.Seed), byte(p.Seed >> 8)})
	for number := range p.Count {
		for tile, size := range p.Sizes {
			data := make([]byte, size)
			_, _ = source.Read(data)
			at := began.Add(time.Duration(float64(number) * float64(time.Second) / p.FPS))
			if err = w.WriteTile(&journal.Tile{Number: uint32(number), Capture: at, Tile: tile, Codec: randomCodec,
				Data: data}); err == nil {
				err = ctx.Err()
			}
			if err != nil {
				_ = w.Close()
				return nil, err
			}
		}
	}
	mean := float64(total)
	return &Prepared{
		Output: p.Output, Captures: p.Count, Tiles: len(tiles), Codec: "random", FPS: p.FPS,
		Seconds:   time.Since(began).Seconds(),
		Qualities: []PreparedQuality{{Name: "only", BytesPerCapture: mean, Mbps: mean * 8 * p.FPS / 1e6}},
	}, w.Close()
}
