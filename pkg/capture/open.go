package capture

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/glb"
	"github.com/volsfu/volsfu/pkg/capture/ply"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
)

// kind is one row of the table of sources: what stands before the colon, what stands after it, and how to open it.
type kind struct {
	name     string
	argument string // empty: the source takes none
	optional bool   // the argument may be left out
	open     func(clock Clock, argument string, options Options) (Source, error)
	// camera opens the source as one of several cameras; nil where it is none.
	camera func(name, argument string) (recording, error)
}

// kinds are the sources that exist. A new source is a new row.
var kinds = []kind{
	{name: "synthetic", open: openSynthetic},
	{name: "ply", argument: "DIR", open: openPLY},
	{name: "rgbd", argument: "DIR", camera: openRGBD},
	{name: "kinect", argument: "FILE.mkv", camera: openKinect},
	{name: "glb", argument: "FILE", open: openGLB},
	{name: "replay", argument: "FILE", open: openReplay},
	{name: "realsense", argument: "FILE", optional: true, open: openRealSense},
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
	switch {
	case k.argument == "":
		return k.name
	case k.optional:
		return k.name + "[:" + k.argument + "]"
	}
	return k.name + ":" + k.argument
}

// Open opens a source by its specification, such as "synthetic" or "ply:DIR", on the computer's clock. Sources of files read every frame
// once before it returns, in parallel, so that a broken file is an error here and not in the middle of a conference.
//
// Several recordings of cameras, written one after another with commas between them, become one: "rgbd:left,rgbd:right". A camera's name is
// that of its folder or file; where that will not do, it stands before the kind: "left=rgbd:monday/rgbd".
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
	parts, err := parseSpec(spec)
	if err != nil {
		return nil, err
	}
	if parts[0].kind.camera != nil {
		return openRig(clock, parts, options)
	}
	return parts[0].kind.open(clock, parts[0].argument, options)
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

func (p performance) render(_ context.Context, number int64, into *Frame) error {
	p.figure.At(time.Duration(float64(number)*float64(time.Second)/p.rate), &into.Cloud)
	into.Images = into.Images[:0]
	return nil
}

func (p performance) close() error { return nil }

func openPLY(clock Clock, dir string, options Options) (Source, error) {
	folder, err := ply.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	description := fmt.Sprintf("%d PLY frames from %s", folder.Len(), dir)
	return openClip(clock, plyFolder{folder}, Info{Description: description, FrameRate: options.rate(defaultFPS)}, options)
}

// plyFolder is a folder of PLY files as footage.
type plyFolder struct{ *ply.Folder }

// Load implements footage.
func (f plyFolder) Load(index int, into *shot) error {
	into.images = into.images[:0]
	return f.Folder.Load(index, &into.cloud)
}

// Close implements footage: no file stays open.
func (f plyFolder) Close() error { return nil }

// openGLB samples an animated mesh.
func openGLB(clock Clock, path string, options Options) (Source, error) {
	rate := options.rate(defaultFPS)
	points := options.Points
	if points == 0 {
		points = synthetic.DefaultConfig().Points
	}
	figure, err := glb.Open(path, glb.Config{Points: points, Seed: options.Seed, FrameRate: rate})
	if err != nil {
		return nil, err
	}
	description := fmt.Sprintf("%d frames of a mesh of %d triangles from %s", figure.Len(), figure.Triangles(), path)
	return openClip(clock, mesh{figure}, Info{Description: description, FrameRate: rate}, options)
}

// mesh is an animated mesh as footage.
type mesh struct{ *glb.Figure }

// Load implements footage.
func (m mesh) Load(index int, into *shot) error {
	into.images = into.images[:0]
	return m.Figure.Load(index, &into.cloud)
}

// Close implements footage: no file stays open.
func (m mesh) Close() error { return nil }

// openClip plays footage. It closes the footage where that fails.
func openClip(clock Clock, frames footage, info Info, options Options) (Source, error) {
	source, err := playClip(clock, frames, info, options)
	if err != nil {
		return nil, err
	}
	return source, nil
}

func playClip(clock Clock, frames footage, info Info, options Options) (*paced, error) {
	clip, err := newClip(frames, options)
	if err != nil {
		_ = frames.Close()
		return nil, err
	}
	info.Box, info.Points = clip.box, clip.points
	return newPaced(clock, clip, info), nil
}
