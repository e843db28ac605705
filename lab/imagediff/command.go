package imagediff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/internal/peer/viewtrace"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
)

// comparing has the flags of vollab compare.
type comparing struct {
	log        string
	frames     string
	shown      string
	source     string
	background []string
	capture    capture.Options
	codec      string
	bits       int
	speed      int
	colorless  bool
	viewpoint  string
	person     string
	view       string
	from       time.Duration
	until      time.Duration
	every      int
	width      int
	height     int
	films      string
}

// Command returns the command vollab compare.
func Command() *cobra.Command {
	c := &comparing{capture: capture.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Draw captured and received frames, and measure the difference of the pictures",
		Long: "Draw captured and received frames from the same view, and measure the difference of the " +
			"pictures. Received frames are encoded again according to the log of " +
			"vollab direct consume, with the source, the codec and the parameters of vollab direct produce, and " +
			"checked by their hash. Alternatively, the frames are in a file of prepared frames. The source " +
			"must yield the same frames whenever it is opened. The command prints one JSON object.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), peer.NewLog(cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.log, "log", "", "the consumer's log of frames, as JSON")
	f.StringVar(&c.frames, "frames", "", "instead of --log: file of encoded frames that were published in a loop, "+
		"as volpeer record --content encoded writes them")
	f.StringVar(&c.shown, "shown", "", "the frames of --frames that were shown: JSON lines with number, which "+
		"counts captures from 0, and quality")
	f.StringVar(&c.source, "source", "synthetic", "source of the point clouds: "+strings.Join(capture.Kinds(), ", "))
	f.StringArrayVar(&c.background, "background", nil,
		"background to remove from depth images; may be repeated: "+depth.BackgroundGrammar)
	f.StringVar(&c.capture.Calibration, "calibration", "",
		"file in YAML or JSON with the poses of several cameras; by default all are at the origin")
	f.Float64Var(&c.capture.FPS, "fps", 0, "frames per second; 0 means the rate of the source, or 30 if the source "+
		"has none")
	f.IntVar(&c.capture.Points, "points", 125000, "largest number of points per frame; 0 means no limit")
	f.IntVar(&c.capture.Seed, "seed", 0, "seed of the synthetic figure and of the order of points")
	f.StringVar(&c.codec, "codec", "", codecs.Grammar+"; the default is draco, or zstd in a program without "+
		"Draco")
	f.IntVar(&c.bits, "bits", 11, "bits per coordinate, 1 to 30")
	f.IntVar(&c.speed, "speed", 7, "speed of the codec, 0 (smallest) to 10 (fastest)")
	f.BoolVar(&c.colorless, "no-colors", false, "the frames were encoded without colours")
	f.StringVar(&c.viewpoint, "viewpoint", "",
		"CSV file with recorded viewpoints, 30 per second, that are replayed in a loop")
	f.StringVar(&c.person, "viewpoint-of", "", "participant in that file; the default is the first participant")
	f.StringVar(&c.view, "render-from", "", "fixed view: X,Y,Z in metres, and optionally YAW to the left and "+
		"PITCH upwards in degrees; the default is the recording of --viewpoint, or the front")
	f.DurationVar(&c.from, "from", 0, "time at the beginning that is not compared")
	f.DurationVar(&c.until, "until", 0, "end of the compared time, including frames that were not received; 0 means "+
		"the end of the last frame that was decoded")
	f.IntVar(&c.every, "every", 1, "compare every n-th captured frame")
	f.IntVar(&c.width, "width", render.Width, "width of the pictures")
	f.IntVar(&c.height, "height", render.Height, "height of the pictures")
	f.StringVar(&c.films, "films", "", "folder for both sequences of pictures, without compression, as "+
		"captured.y4m and shown.y4m")
	return cmd
}

// Errors of the flags.
var (
	errReceived = errors.New("expected either --log, or --frames and --shown")
	errPicture  = errors.New("--width, --height: expected even numbers from 16 to 4096")
	errInterval = errors.New("--from, --until: expected an interval of times from 0")
)

// check parses and checks the flags.
func (c *comparing) check(log *slog.Logger) (chosen codec.Codec, params codec.Params, err error) {
	switch {
	case (c.log == "") == (c.frames == "") || (c.frames == "") != (c.shown == ""):
		return nil, params, errReceived
	case c.every < 1:
		return nil, params, fmt.Errorf("--every: expected 1 or more, got %d", c.every)
	case c.from < 0 || c.until < 0 || c.until > 0 && c.until <= c.from:
		return nil, params, fmt.Errorf("%w, got %v to %v", errInterval, c.from, c.until)
	}
	for _, edge := range []int{c.width, c.height} {
		if edge < 16 || edge > 4096 || edge%2 != 0 {
			return nil, params, fmt.Errorf("%w, got %dx%d", errPicture, c.width, c.height)
		}
	}
	if c.capture.Background, err = depth.ParseBackground(c.background); err != nil {
		return nil, params, fmt.Errorf("--background: %w", err)
	}
	if chosen, err = codecs.Choose(c.codec, log); err != nil {
		return nil, params, err
	}
	params = codec.Params{PositionBits: c.bits, Speed: c.speed, NoColors: c.colorless}
	return chosen, params, nil
}

// views returns the function of the view.
func (c *comparing) views() (func(capture.Info, time.Duration) render.View, error) {
	switch {
	case c.view != "":
		view, err := render.ParseView(c.view)
		if err != nil {
			return nil, fmt.Errorf("--render-from: %w", err)
		}
		return func(capture.Info, time.Duration) render.View { return view }, nil
	case c.viewpoint != "":
		trace, err := viewtrace.Open(c.viewpoint, c.person)
		if err != nil {
			return nil, fmt.Errorf("--viewpoint: %w", err)
		}
		return func(_ capture.Info, since time.Duration) render.View {
			v := trace.At(since)
			return render.View{Position: v.Position, Orientation: v.Orientation, FOV: v.FOV}
		}, nil
	}
	return func(info capture.Info, _ time.Duration) render.View {
		return render.Fit(info.Box, float64(c.width)/float64(c.height))
	}, nil
}

// run compares the pictures and prints the report.
func (c *comparing) run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	chosen, params, err := c.check(log)
	if err != nil {
		return err
	}
	config := Config{From: c.from, Until: c.until, Every: c.every, Width: c.width, Height: c.height}
	if config.View, err = c.views(); err != nil {
		return err
	}
	if err := c.received(&config, chosen, params); err != nil {
		return err
	}
	var films *films
	if c.films != "" {
		config.Film = func(fps float64) (Film, error) {
			films, err = openFilms(c.films, c.width, c.height, fps)
			return films, err
		}
	}
	scores, err := Compare(ctx, config)
	if films != nil {
		err = errors.Join(err, films.close())
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(reportOf(scores))
}

// received opens the received frames and their source.
func (c *comparing) received(config *Config, chosen codec.Codec, params codec.Params) error {
	config.Open = func(clock capture.Clock) (capture.Source, error) {
		source, err := capture.OpenOn(clock, c.source, c.capture)
		if err != nil {
			return nil, fmt.Errorf("--source: %w", err)
		}
		return source, nil
	}
	if c.frames != "" {
		return c.receivedPrepared(config)
	}
	file, err := os.Open(c.log)
	if err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	defer func() { _ = file.Close() }()
	records, err := stages.Read(file)
	if err != nil {
		return fmt.Errorf("--log: %s: %w", c.log, err)
	}
	config.Received = func(info capture.Info) Received {
		params.Box = info.Box
		return NewRemaker(records, chosen, params)
	}
	return nil
}

// receivedPrepared opens prepared frames.
func (c *comparing) receivedPrepared(config *Config) error {
	file, err := os.Open(c.shown)
	if err != nil {
		return fmt.Errorf("--shown: %w", err)
	}
	defer func() { _ = file.Close() }()
	shown, err := ReadShown(file)
	if err != nil {
		return fmt.Errorf("--shown: %s: %w", c.shown, err)
	}
	prepared, err := OpenPrepared(c.frames, shown)
	if err != nil {
		return fmt.Errorf("--frames: %w", err)
	}
	open := config.Open
	config.Open = func(clock capture.Clock) (capture.Source, error) {
		source, err := open(clock)
		if err != nil {
			return nil, err
		}
		return prepared.Loop(source), nil
	}
	config.Received = func(capture.Info) Received { return prepared }
	return nil
}

// Report is the JSON object that vollab compare prints.
type Report struct {
	// Repeated is the number of frames that repeat an earlier one.
	Repeated int     `json:"repeated"`
	Frames   []Score `json:"frames"`
}

func reportOf(scores []Score) Report {
	r := Report{Frames: append([]Score{}, scores...)}
	for i := range scores {
		if scores[i].Repeats() {
			r.Repeated++
		}
	}
	return r
}
