package capture

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/glb"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/capture/virtual"
)

// openVirtual opens a source as the virtual cameras of the options see it.
func openVirtual(clock Clock, p part, options Options) (Source, error) {
	if p.kind.virtual == nil {
		var usable []string
		for _, k := range kinds {
			if k.virtual != nil {
				usable = append(usable, k.usage())
			}
		}
		return nil, fmt.Errorf("%w: virtual cameras see %s, got %s", ErrOptions, strings.Join(usable, " and "),
			p.kind.usage())
	}
	if options.Background.Static {
		return nil, fmt.Errorf("%w: virtual cameras see no background, expected none that is static", ErrOptions)
	}
	rig, err := virtual.ReadRig(options.VirtualCameras)
	if err != nil {
		return nil, err
	}
	return p.kind.virtual(clock, p.argument, rig, options)
}

// seenBy describes the cameras of a rig for people.
func seenBy(rig virtual.Rig) string {
	var sizes []string
	for _, c := range rig.Cameras {
		sizes = append(sizes, fmt.Sprintf("%s %dx%d", c.Name, c.Width, c.Height))
	}
	return "seen by virtual cameras " + strings.Join(sizes, ", ")
}

// camerasOf returns the cameras of a rig.
func camerasOf(rig virtual.Rig) []depth.Camera {
	var cameras []depth.Camera
	for _, c := range rig.Cameras {
		cameras = append(cameras, c.Camera)
	}
	return cameras
}

// openVirtualMesh plays an animated mesh.
func openVirtualMesh(clock Clock, path string, rig virtual.Rig, options Options) (Source, error) {
	rate := options.rate(defaultFPS)
	// The single point is not used.
	figure, err := glb.Open(path, glb.Config{Points: 1, FrameRate: rate})
	if err != nil {
		return nil, err
	}
	var recordings []recording
	for i := range rig.Cameras {
		recordings = append(recordings, newMeshCamera(figure, rig, i, rate))
	}
	r, err := newRig(recordings, options)
	if err != nil {
		return nil, err
	}
	return openClip(clock, r, Info{
		Description: fmt.Sprintf("%d frames of a mesh of %d triangles from %s, %s", figure.Len(), figure.Triangles(),
			path, seenBy(rig)),
		FrameRate: rate,
		Cameras:   r.cameras,
	}, options)
}

// meshCamera is a virtual camera in front of an animated mesh, as a recording.
type meshCamera struct {
	figure *glb.Figure
	camera depth.Camera
	rate   float64
	lenses sync.Pool // of *lens, one per load in progress
}

// lens is the memory for an image.
type lens struct {
	renderer *virtual.Renderer
	mesh     virtual.Mesh
}

func newMeshCamera(figure *glb.Figure, rig virtual.Rig, camera int, rate float64) *meshCamera {
	c := &meshCamera{figure: figure, camera: rig.Cameras[camera].Camera, rate: rate}
	c.lenses.New = func() any { return &lens{renderer: virtual.NewRenderer(rig, camera)} }
	return c
}

// Camera implements recording.
func (c *meshCamera) Camera() depth.Camera { return c.camera }

// Description implements recording.
func (c *meshCamera) Description() string { return c.camera.Name }

// Len implements recording.
func (c *meshCamera) Len() int { return c.figure.Len() }

// FrameRate implements recording.
func (c *meshCamera) FrameRate() float64 { return c.rate }

// Time implements recording.
func (c *meshCamera) Time(index int) time.Duration { return dueAfter(int64(index), c.rate) }

// Synchronized implements recording.
func (c *meshCamera) Synchronized() bool { return true }

// LoadImage implements recording.
func (c *meshCamera) LoadImage(index int, into *depth.Image) error {
	l := c.lenses.Get().(*lens)
	defer c.lenses.Put(l)
	if err := c.figure.Mesh(index, &l.mesh); err != nil {
		return err
	}
	l.renderer.RenderMesh(&l.mesh, int64(index), into)
	return nil
}

// Close implements recording. No file stays open.
func (c *meshCamera) Close() error { return nil }

const (
	// discSpacing is the distance in metres of the discs of the synthetic figure if it has discCount of them.
	discSpacing = 0.0036
	discCount   = 150_000
	// leastDiscs and mostDiscs are the limits of the number of discs. Opening the figure takes 7 µs for each disc.
	leastDiscs = 20_000
	mostDiscs  = 300_000
)

// discsFor returns the number of discs of the synthetic figure whose distance is a pixel of the camera that shows the
// figure largest. The figure stands at the origin.
func discsFor(rig virtual.Rig) int {
	finest := math.Inf(1)
	for _, c := range rig.Cameras {
		away := max(c.Near, math.Hypot(c.Pose.Translation[0], c.Pose.Translation[2]))
		finest = min(finest, away/max(c.FX, c.FY))
	}
	return int(min(mostDiscs, max(leastDiscs, discCount*discSpacing*discSpacing/(finest*finest))))
}

// openVirtualFigure plays the synthetic figure.
func openVirtualFigure(clock Clock, _ string, rig virtual.Rig, options Options) (Source, error) {
	figure, err := synthetic.New(synthetic.Config{Points: discsFor(rig), Seed: options.Seed})
	if err != nil {
		return nil, err
	}
	// Noise beyond the box is removed, so that the box contains every point.
	options.Background.Box = limited(synthetic.Box(), options.Background.Box)
	s := &studio{figure: figure, rate: options.rate(defaultFPS), limit: options.Points, seed: options.Seed,
		images: make([]depth.Image, len(rig.Cameras))}
	cameras := camerasOf(rig)
	s.projection, err = newProjection(cameras, options, 0, func(int) depth.Background { return options.Background })
	if err != nil {
		return nil, err
	}
	info := Info{Description: "synthetic figure, " + seenBy(rig), FrameRate: s.rate, Box: options.Background.Box,
		Cameras: cameras}
	for _, corner := range [][3]float32{info.Box.Min, info.Box.Max} {
		include(&info.Box, [3]float64{float64(corner[0]), float64(corner[1]), float64(corner[2])})
	}
	for i, c := range cameras {
		s.renderers = append(s.renderers, virtual.NewRenderer(rig, i))
		info.Points += c.Width * c.Height
	}
	if s.limit > 0 {
		info.Points = min(info.Points, s.limit)
	}
	return newPaced(clock, s, info), nil
}

// studio is the synthetic figure in front of virtual cameras as content.
type studio struct {
	figure     *synthetic.Figure
	rate       float64
	limit      int
	seed       int
	surface    virtual.Surfels
	renderers  []*virtual.Renderer
	images     []depth.Image
	projection *projection
	shot       shot
}

// render implements content. Cameras render in parallel.
func (s *studio) render(_ context.Context, number int64, into *Frame) error {
	s.figure.SurfaceAt(dueAfter(number, s.rate), &s.surface)
	var group sync.WaitGroup
	for i, r := range s.renderers[1:] {
		group.Go(func() { r.RenderSurfels(&s.surface, number, &s.images[i+1]) })
	}
	s.renderers[0].RenderSurfels(&s.surface, number, &s.images[0])
	group.Wait()
	// The shot uses the memory of the frame.
	s.shot = shot{cloud: into.Cloud, images: into.Images, rasters: into.Rasters}
	if err := s.projection.project(s.images, &s.shot); err != nil {
		return err
	}
	into.Cloud, into.Images, into.Rasters = s.shot.cloud, s.shot.images, s.shot.rasters
	scatter(&into.Cloud, s.limit, s.seed, int(number))
	return nil
}

// close implements content.
func (s *studio) close() error { return nil }
