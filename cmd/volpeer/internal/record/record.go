// Package record implements volpeer record: it writes a source into a journal, as captured or as encoded.
//
// The recording goroutine and the progress goroutine share the counters of a take, which a mutex guards.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/production"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// options has the flags of volpeer record. Encoding has the flags of publishing.
type options struct {
	production.Options
	output  string
	content string
	seconds float64
	json    bool
}

// Command returns the command volpeer record.
func Command() *cobra.Command {
	r := &options{Options: production.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record a source into one file, as it is captured or as it is encoded, for --source replay:FILE",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), peer.NewLog(cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.output, "output", "", "the file to create; it must not exist")
	f.StringVar(&r.content, "content", string(journal.Points),
		"points: clouds as captured; images: depth and colour images with the background; encoded: "+
			"tiles at all qualities")
	r.Flags(f, 0)
	f.Float64Var(&r.seconds, "seconds", 0, "time to record in seconds; 0 means until interrupted")
	f.BoolVar(&r.json, "json", false, "print one JSON object at the end")
	return cmd
}

// Errors of recording.
var (
	errOutput  = errors.New("--output: expected a file")
	errContent = errors.New("--content: expected points, images or encoded")
	errImages  = errors.New("--content images: the source has no depth images")
)

// Summary is the JSON object that volpeer record --json prints.
type Summary struct {
	Content string  `json:"content"`
	Seconds float64 `json:"seconds"`
	// Frames is the number of recorded captures or encoded tiles. FramesLost is the number of captures that failed or
	// fell due while an earlier capture was being read or written.
	Frames     int64 `json:"frames"`
	FramesLost int64 `json:"frames_lost"`
	Bytes      int64 `json:"bytes"`
}

// run records until the context ends, the time limit is reached or recording fails permanently.
func (r *options) run(ctx context.Context, out, console io.Writer, log *slog.Logger) error {
	content := journal.Content(r.content)
	switch {
	case content != journal.Points && content != journal.Images && content != journal.Encoded:
		return fmt.Errorf("%w, got %.32q", errContent, r.content)
	case r.output == "":
		return errOutput
	case r.seconds < 0:
		return fmt.Errorf("--seconds: %w", peer.ErrDuration)
	}
	settings, err := r.Settings(log)
	if err != nil {
		return err
	}
	r.Capture.Images = content == journal.Images
	source, err := r.Open(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	t, err := r.begin(ctx, content, settings, source)
	if err != nil {
		return err
	}
	log.Info("recording", "source", source.Info().Description, "content", r.content, "output", r.output)
	err = t.run(ctx, r.seconds, console, log)
	if r.json {
		err = errors.Join(err, json.NewEncoder(out).Encode(t.summary(content)))
	}
	return err
}

// take is a recording in progress. film and the progress goroutine share the counters.
type take struct {
	writer *journal.Writer
	// film records until the context ends, which is not an error.
	film func(ctx context.Context, log *slog.Logger) error

	mu           sync.Mutex
	lost         int64
	began, ended time.Time
}

// begin creates the journal and returns the take.
func (r *options) begin(ctx context.Context, content journal.Content, settings production.Settings,
	source capture.Source) (*take, error) {
	info := source.Info()
	head := journal.Head{Content: content, Description: info.Description, Begun: time.Now().UTC(),
		FrameRate: info.FrameRate, Box: info.Box, Points: info.Points, Cameras: info.Cameras}
	if content == journal.Images && len(info.Cameras) == 0 {
		return nil, fmt.Errorf("%w: %s", errImages, info.Description)
	}
	t := &take{}
	if content != journal.Encoded {
		t.film = func(ctx context.Context, log *slog.Logger) error { return t.capture(ctx, content, source, log) }
		return t, t.create(r.output, head)
	}
	producer, description, err := r.Prepare(ctx, settings, source)
	if err != nil {
		return nil, err
	}
	head.Publication = &description
	t.film = func(ctx context.Context, _ *slog.Logger) error {
		defer producer.Close()
		err := producer.Run(ctx, tileSink{t.writer})
		t.lose(producer.Counts().Dropped.All())
		return err
	}
	if err := t.create(r.output, head); err != nil {
		producer.Close()
		return nil, err
	}
	return t, nil
}

func (t *take) create(path string, head journal.Head) (err error) {
	if t.writer, err = journal.Create(path, head); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

func (t *take) lose(frames int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost += frames
}

// maxBroken is the number of consecutive captures that may fail: one second at 30 per second.
const maxBroken = 30

// capture records clouds or images.
func (t *take) capture(ctx context.Context, content journal.Content, source capture.Source, log *slog.Logger) error {
	var frame capture.Frame
	broken := 0
	for first := true; ; first = false {
		err := source.Read(ctx, &frame)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && broken == maxBroken:
			return err
		case err != nil:
			broken++
			t.lose(1)
			log.Warn("capture failed", "error", err)
			continue
		}
		broken = 0
		if !first {
			t.lose(frame.Skipped)
		}
		written := journal.Frame{Number: frame.Number, Capture: frame.Capture, Cloud: frame.Cloud}
		if content == journal.Images {
			written = journal.Frame{Number: frame.Number, Capture: frame.Capture, Images: frame.Images}
		}
		if err := t.writer.WriteFrame(&written); err != nil {
			return err
		}
	}
}

// tileSink is a Sink that records all tiles at all qualities.
type tileSink struct{ writer *journal.Writer }

// Wanted implements produce.Sink.
func (tileSink) Wanted(int, volumetric.Quality) bool { return true }

// GaveUp implements produce.Sink.
func (tileSink) GaveUp(int, volumetric.Quality) bool { return false }

// WriteFrame implements produce.Sink.
func (s tileSink) WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	err := s.writer.WriteTile(&journal.Tile{Number: f.Number, Capture: f.Capture, Tile: tile, Quality: quality,
		Codec: f.Codec, Data: f.Data})
	return err == nil, err
}

var _ produce.Sink = tileSink{}

// run records, prints progress every second, and syncs the journal to disk every second.
func (t *take) run(ctx context.Context, seconds float64, console io.Writer, log *slog.Logger) error {
	ctx, cancel := peer.Limit(ctx, seconds)
	defer cancel()
	t.began = time.Now()
	ended := make(chan error, 1)
	go func() { ended <- t.film(ctx, log) }()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			frames, bytes := t.writer.Written()
			_, _ = fmt.Fprintf(console, "recorded %d frames  lost %d  %s\n", frames, t.losses(),
				peer.RateText(bytes, now.Sub(t.began)))
			if err := t.writer.Sync(); err != nil {
				cancel()
				err = errors.Join(err, <-ended)
				t.ended = time.Now()
				return errors.Join(err, t.writer.Close())
			}
		case err := <-ended:
			t.ended = time.Now()
			return errors.Join(err, t.writer.Close())
		}
	}
}

func (t *take) losses() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

func (t *take) summary(content journal.Content) Summary {
	frames, bytes := t.writer.Written()
	return Summary{Content: string(content), Seconds: math.Round(t.ended.Sub(t.began).Seconds()*1000) / 1000,
		Frames: frames, FramesLost: t.losses(), Bytes: bytes}
}
