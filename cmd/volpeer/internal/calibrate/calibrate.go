// Package calibrate implements volpeer calibrate: it finds a board in the pictures of depth cameras, computes the poses
// of the cameras, and writes the file that --calibration reads.
//
// One goroutine per camera searches a picture; nothing is shared between them.
package calibrate

import (
	"cmp"
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

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/cameras"
	"github.com/volsfu/volsfu/internal/peer/save"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/board"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/extrinsics"
)

// options has the flags.
type options struct {
	source, output, print string
	size                  string
	square                float64
	shots                 int
	seconds, maxError     float64
	origin                string
	moving, json          bool
	capture               capture.Options
	cameras               cameras.Flags
}

// Command returns the command volpeer calibrate.
func Command() *cobra.Command {
	o := &options{capture: capture.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Compute the poses of several depth cameras from pictures of a board, for --calibration",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), peer.NewLog(cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.source, "source", "", "the depth cameras, live or recorded: realsense, realsense:FILE, rgbd:DIR, "+
		"kinect:FILE.mkv, replay:FILE of images; rgbd and kinect may be repeated, separated by commas")
	f.StringVar(&o.output, "output", "", "the file to write; the default is the standard output")
	f.StringVar(&o.size, "board", "9x6", "numbers of squares of the board")
	f.Float64Var(&o.square, "square", 0, "edge of a square in metres, measured on the printed board")
	f.StringVar(&o.print, "print", "", "write the board as an SVG image to this file, and end")
	f.IntVar(&o.shots, "shots", 20, "number of places of the board after which the poses are computed")
	f.Float64Var(&o.seconds, "seconds", 120,
		"time in seconds after which the poses are computed from the places seen so far")
	f.Float64Var(&o.maxError, "max-error", extrinsics.DefaultConfig().MaxError,
		"greatest average error of a camera's corners in pixels; results beyond are refused")
	f.StringVar(&o.origin, "origin", originCamera,
		"origin of the world: camera, the first camera; or board, the board of the first shot, which lies on the floor")
	f.BoolVar(&o.moving, "moving", false,
		"use frames in which the board differs from the frame before, such as sequences of single pictures")
	f.Float64Var(&o.capture.FPS, "fps", 0, "frames per second; 0 means the rate of the source")
	f.BoolVar(&o.json, "json", false, "print one JSON object with the results")
	o.cameras.Add(f)
	return cmd
}

// The origins of the world.
const (
	originCamera = "camera"
	originBoard  = "board"
)

// Errors of the flags and of the source.
var (
	errSource = errors.New("--source: expected depth cameras or recordings of such, of which there are several or " +
		"--origin is board")
	errSize    = errors.New("--board: expected COLUMNSxROWS")
	errSquare  = errors.New("--square: expected the edge of a square in metres, measured on the printed board")
	errOrigin  = errors.New("--origin: expected camera or board")
	errShots   = errors.New("--shots: expected at least 3")
	errOutput  = errors.New("--json: expected --output with the file for the poses, which the object does not have")
	errNothing = errors.New("no frame is a shot of the board")
)

// Result is the JSON object that volpeer calibrate --json prints.
type Result struct {
	Shots   int      `json:"shots"`
	Cameras []Camera `json:"cameras"`
}

// Camera is the result of one camera.
type Camera struct {
	Name    string  `json:"name"`
	Shots   int     `json:"shots"`
	Dropped int     `json:"shots_dropped"`
	Corners int     `json:"corners"`
	Pixels  float64 `json:"error_px"`
	// Position and Angle are standard deviations relative to the first camera.
	Position float64 `json:"position_deviation_m"`
	Angle    float64 `json:"angle_deviation_deg"`
}

func (o *options) run(ctx context.Context, out, console io.Writer, log *slog.Logger) error {
	var columns, rows int
	if n, err := fmt.Sscanf(o.size+" ", "%dx%d ", &columns, &rows); n != 2 || err != nil {
		return fmt.Errorf("%w, got %.32q", errSize, o.size)
	}
	switch {
	case o.square == 0:
		return errSquare
	case o.origin != originCamera && o.origin != originBoard:
		return fmt.Errorf("%w, got %.32q", errOrigin, o.origin)
	case o.shots < 3:
		return fmt.Errorf("%w, got %d", errShots, o.shots)
	case o.json && o.output == "" && o.print == "":
		return errOutput
	case !(o.seconds > 0):
		return fmt.Errorf("--seconds: %w", peer.ErrDuration)
	}
	b, err := board.New(columns, rows, o.square)
	if err != nil {
		return fmt.Errorf("--board, --square: %w", err)
	}
	if o.print != "" {
		return save.File(o.print, b.WriteSVG)
	}
	if err := o.cameras.Set(&o.capture.RealSense, log); err != nil {
		return err
	}
	o.capture.Images = true
	source, err := capture.OpenOn(&eager{now: time.Now()}, o.source, o.capture)
	if err != nil {
		return fmt.Errorf("--source: %w", err)
	}
	defer func() { _ = source.Close() }()
	all := source.Info().Cameras
	if len(all) == 0 || len(all) == 1 && o.origin == originCamera {
		return fmt.Errorf("%w, got %s", errSource, source.Info().Description)
	}
	log.Info("searching the board", "source", source.Info().Description, "cameras", len(all))
	album := newAlbum(all, o.moving)
	if err := o.collect(ctx, source, b, album, console); err != nil {
		return err
	}
	return o.solve(all, album, out, console)
}

// eager is a clock on which everything is due at once, so that no frame of a recording is skipped. Cameras deliver
// frames at their own times.
type eager struct{ now time.Time }

func (e *eager) Now() time.Time { return e.now }

func (e *eager) Wait(ctx context.Context, until time.Time) error {
	if until.After(e.now) {
		e.now = until
	}
	return ctx.Err()
}

// collect reads frames until there are enough shots, the recording or the time ends, or the context is done.
func (o *options) collect(ctx context.Context, source capture.Source, b board.Board, album *album,
	console io.Writer) error {
	detectors := make([]*board.Detector, len(source.Info().Cameras))
	for i := range detectors {
		detectors[i] = board.NewDetector(b)
	}
	frames := source.Info().Frames
	var frame capture.Frame
	var begun time.Time
	for album.shots < o.shots {
		if err := source.Read(ctx, &frame); err != nil {
			// The user ends the search by Ctrl-C.
			if ctx.Err() != nil && album.shots >= extrinsics.DefaultConfig().LeastShots {
				return nil
			}
			return err
		}
		if begun.IsZero() {
			begun = frame.Capture
		}
		if frames > 0 && frame.Number >= int64(frames) || frame.Capture.Sub(begun).Seconds() > o.seconds {
			break
		}
		views := search(detectors, b, source.Info().Cameras, frame.Images)
		if album.offer(views) {
			fmt.Fprintf(console, "shot %d:%s\n", album.shots, album.describe(views))
		}
	}
	if album.shots == 0 {
		return fmt.Errorf("%w: expected a board of %d × %d squares, printed by --print, held still in front of the "+
			"cameras or, with --moving, at different places", errNothing, b.Columns, b.Rows)
	}
	return nil
}

// search returns the corners that each camera sees.
func search(detectors []*board.Detector, b board.Board, all []depth.Camera, images []depth.Image) []extrinsics.View {
	views := make([]extrinsics.View, len(images))
	var group sync.WaitGroup
	for i := range images {
		views[i].Camera = i
		if len(images[i].Colors) == 0 {
			continue
		}
		group.Go(func() {
			for _, c := range detectors[i].Find(grayOf(&all[i], &images[i])) {
				sight := extrinsics.Sight{Board: b.At(c.Column, c.Row), U: c.U, V: c.V}
				views[i].Sights = append(views[i].Sights, sight)
			}
		})
	}
	group.Wait()
	return views
}

// grayOf returns the brightness of an image. Black pixels without depth are those of which the colour camera sees
// nothing: they get the brightness of their neighbours.
func grayOf(c *depth.Camera, m *depth.Image) *board.Gray {
	g := board.NewGray(c.Width, c.Height)
	missing := func(i int) bool { return m.Depth[i] == 0 && m.Colors[i] == [3]uint8{} }
	for i, color := range m.Colors {
		g.Pixels[i] = 0.299*float32(color[0]) + 0.587*float32(color[1]) + 0.114*float32(color[2])
	}
	for i := range g.Pixels {
		if !missing(i) {
			continue
		}
		x, y := i%c.Width, i/c.Width
		sum, count := float32(0), float32(0)
		for v := max(y-1, 0); v <= min(y+1, c.Height-1); v++ {
			for u := max(x-1, 0); u <= min(x+1, c.Width-1); u++ {
				if k := v*c.Width + u; !missing(k) {
					sum, count = sum+g.Pixels[k], count+1
				}
			}
		}
		if count > 0 {
			g.Pixels[i] = sum / count
		}
	}
	return g
}

// solve computes the poses, reports them and writes the file.
func (o *options) solve(all []depth.Camera, album *album, out, console io.Writer) error {
	config := extrinsics.DefaultConfig()
	config.MaxError = o.maxError
	if o.origin == originBoard {
		config.Origin = extrinsics.Board
	}
	solved, err := extrinsics.Solve(all, album.views, config)
	result := Result{Shots: album.shots}
	var names []string
	var poses []depth.Pose
	for i, c := range solved {
		names, poses = append(names, c.Name), append(poses, c.Pose)
		degrees := c.Angle * 180 / math.Pi
		result.Cameras = append(result.Cameras, Camera{c.Name, c.Shots, c.Dropped, c.Corners, c.Error, c.Position,
			degrees})
		line := fmt.Sprintf("camera %s: %d shots (%d dropped), %d corners, error %.2f px", c.Name, c.Shots, c.Dropped,
			c.Corners, c.Error)
		if i > 0 {
			line += fmt.Sprintf(", position ± %.1f mm, rotation ± %.2f°", 1000*c.Position, degrees)
		}
		fmt.Fprintln(console, line)
	}
	if err != nil {
		return err
	}
	file := depth.FormatCalibration(names, poses)
	if o.output != "" {
		err = save.File(o.output, func(w io.Writer) error {
			_, err := w.Write(file)
			return err
		})
	} else {
		_, err = out.Write(file)
	}
	if o.json {
		err = cmp.Or(err, json.NewEncoder(out).Encode(result))
	}
	return err
}
