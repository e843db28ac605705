package capture

import (
	"context"
	"fmt"

	"github.com/volsfu/volsfu/pkg/capture/glb"
	"github.com/volsfu/volsfu/pkg/capture/ply"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/capture/virtual"
)

// kind is one row of the table of sources: the name before the colon, the argument after the colon,
// and functions that open the source.
type kind struct {
	name     string
	argument string // empty if the source takes no argument
	optional bool   // the argument may be omitted
	open     func(clock Clock, argument string, options Options) (Source, error)
	// camera opens the source as one of several cameras; nil if the source is not a camera
	// recording.
	camera func(name, argument string) (recording, error)
	// virtual opens the source as virtual cameras see it; nil if the source has no surface.
	virtual func(clock Clock, argument string, rig virtual.Rig, options Options) (Source, error)
}

// kinds contains all sources. A new source is a new row.
var kinds = []kind{
	{name: "synthetic", open: openSynthetic, virtual: openVirtualFigure},
	{name: "ply", argument: "DIR", open: openPLY},
	{name: "rgbd", argument: "DIR", camera: openRGBD},
	{name: "cwipc", argument: "FILE|DIR", open: openCWIPC},
	{name: "kinect", argument: "FILE.mkv", camera: openKinect},
	{name: "glb", argument: "FILE", open: openGLB, virtual: openVirtualMesh},
	{name: "replay", argument: "FILE", open: openReplay},
	{name: "realsense", argument: "FILE", optional: true, open: openRealSense},
}

// Kinds returns the syntax of all sources, for example "ply:DIR".
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

// Open opens a source by its specification, such as "synthetic" or "ply:DIR", on the computer's
// clock. Sources of files read every frame once before Open returns, in parallel, so that a broken
// file results in an error of Open and not in the middle of a conference.
//
// Several camera recordings, separated by commas, are merged: "rgbd:left,rgbd:right". The name of a
// camera is the name of its folder or file, unless a name precedes the kind:
// "left=rgbd:monday/rgbd".
//
// Errors wrap ErrUnknownSource, ErrArgument or ErrOptions, or name the invalid file.
func Open(spec string, options Options) (Source, error) {
	return OpenOn(SystemClock{}, spec, options)
}

// OpenOn opens a source as Open does, on the given clock.
func OpenOn(clock Clock, spec string, options Options) (Source, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	parts, err := parseSpec(spec)
	if err != nil {
		return nil, err
	}
	if options.VirtualCameras != "" {
		return openVirtual(clock, parts[0], options)
	}
	if parts[0].kind.camera != nil {
		return openRig(clock, parts, options)
	}
	return parts[0].kind.open(clock, parts[0].argument, options)
}

// The synthetic figure and PLY files have no frame rate of their own. Both are played at the usual
// rate of conferences.
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

// performance is the synthetic figure as content. The time is the frame's deadline, counted from the first frame.
type performance struct {
	figure *synthetic.Figure
	rate   float64
}

func (p performance) render(_ context.Context, number int64, into *Frame) error {
	p.figure.At(dueAfter(number, p.rate), &into.Cloud)
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
	return openClip(
		clock,
		plyFolder{folder},
		Info{Description: description, FrameRate: options.rate(defaultFPS)},
		options,
	)
}

// plyFolder is a folder of PLY files as footage.
type plyFolder struct{ *ply.Folder }

// Load implements footage.
func (f plyFolder) Load(index int, into *shot) error {
	into.images = into.images[:0]
	return f.Folder.Load(index, &into.cloud)
}

// Close implements footage. No file stays open.
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

// Close implements footage. No file stays open.
func (m mesh) Close() error { return nil }

// openClip plays footage. On error it closes the footage.
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
	info.Box, info.Points, info.Frames = clip.box, clip.points, frames.Len()
	return newPaced(clock, clip, info), nil
}
