package capture

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/ply"
	"github.com/volsfu/volsfu/pkg/capture/rgbd"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// kind is one row of the table of sources: what stands before the colon, what stands after it, and how to open it.
type kind struct {
	name     string
	argument string // empty: the source takes none
	open     func(clock Clock, argument string, options Options) (Source, error)
}

// kinds are the sources that exist. A new source is a new row.
var kinds = []kind{
	{name: "synthetic", open: openSynthetic},
	{name: "ply", argument: "DIR", open: openPLY},
	{name: "rgbd", argument: "DIR", open: openRGBD},
}

// Kinds lists how the sources that exist are written, for instance "ply:DIR".
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.usage())
	}
	return names
}

func (k kind) usage() string {
	if k.argument == "" {
		return k.name
	}
	return k.name + ":" + k.argument
}

// Open opens a source by its specification, such as "synthetic" or "ply:DIR", on the computer's clock. Sources of files read every frame
// once before it returns, in parallel, so that a broken file is an error here and not in the middle of a conference.
//
// Errors are around ErrUnknownSource, ErrArgument or ErrOptions, or name the file that is wrong.
func Open(spec string, options Options) (Source, error) {
	return OpenOn(SystemClock{}, spec, options)
}

// OpenOn is Open on a clock of the caller's.
func OpenOn(clock Clock, spec string, options Options) (Source, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	name, argument, given := strings.Cut(spec, ":")
	for _, k := range kinds {
		switch {
		case k.name != name:
			continue
		case k.argument == "" && given:
			return nil, fmt.Errorf("%w: %q takes none, got %q", ErrArgument, name, argument)
		case k.argument != "" && argument == "":
			return nil, fmt.Errorf("%w: %q has none, expected %s", ErrArgument, spec, k.usage())
		}
		return k.open(clock, argument, options)
	}
	return nil, fmt.Errorf("%w %q: expected %s", ErrUnknownSource, spec, strings.Join(Kinds(), " or "))
}

// The synthetic figure has no rate of its own, nor have PLY files: both play at what is usual in conferences.
const defaultFPS = 30

func openSynthetic(clock Clock, _ string, options Options) (Source, error) {
	cfg := synthetic.DefaultConfig()
	cfg.Seed = options.Seed
	if options.Points > 0 {
		cfg.Points = options.Points
	}
	figure, err := synthetic.New(cfg)
	if err != nil {
		return nil, err
	}
	rate := options.rate(defaultFPS)
	return newPaced(clock, performance{figure: figure, rate: rate}, Info{
		Description: fmt.Sprintf("synthetic figure of %d points", cfg.Points),
		FrameRate:   rate,
		Box:         synthetic.Box(),
		Points:      cfg.Points,
	}), nil
}

// performance is the synthetic figure as content: its time is the frame's deadline, counted from the first frame.
type performance struct {
	figure *synthetic.Figure
	rate   float64
}

func (p performance) render(_ context.Context, number int64, into *pointcloud.Cloud) error {
	p.figure.At(time.Duration(float64(number)*float64(time.Second)/p.rate), into)
	return nil
}

func (p performance) close() {}

func openPLY(clock Clock, dir string, options Options) (Source, error) {
	folder, err := ply.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	return openClip(clock, folder, fmt.Sprintf("%d PLY frames from %s", folder.Len(), dir), options.rate(defaultFPS), options)
}

func openRGBD(clock Clock, dir string, options Options) (Source, error) {
	folder, err := rgbd.OpenFolder(dir, options.depth())
	if err != nil {
		return nil, err
	}
	camera := folder.Intrinsics()
	own := camera.FPS
	if own == 0 {
		own = defaultFPS
	}
	description := fmt.Sprintf("%d RGB-D frames of %dx%d from %s", folder.Len(), camera.Width, camera.Height, dir)
	return openClip(clock, folder, description, options.rate(own), options)
}

func openClip(clock Clock, frames footage, description string, rate float64, options Options) (Source, error) {
	clip, err := newClip(frames, options)
	if err != nil {
		return nil, err
	}
	return newPaced(clock, clip, Info{Description: description, FrameRate: rate, Box: clip.box, Points: clip.points}), nil
}
