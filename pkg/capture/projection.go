package capture

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// projection converts the images of one frame of one or several cameras to points, and to rasters if requested. It
// belongs to one goroutine.
type projection struct {
	cameras    []depth.Camera
	projectors []*depth.Projector
	visibility *depth.Visibility // nil with one camera
	pruner     *depth.Pruner     // nil without pruning
	images     bool
	rasters    bool
	// cleaned are the images without the pixels that are not points, if only the pruner needs them.
	cleaned []depth.Image
}

// newProjection returns a projection of a number of cameras with names and poses, on a number of threads for each
// image, 0 for all processors. background returns the background of a camera.
func newProjection(cameras []depth.Camera, options Options, threads int, background func(camera int) depth.Background) (
	*projection, error) {
	p := &projection{cameras: cameras, images: options.Images, rasters: options.Rasters}
	for i, camera := range cameras {
		o := depth.Options{Background: background(i), Cleaning: depth.DefaultCleaning(), Threads: threads}
		if len(cameras) > 1 {
			o.Source = 1 << i
		}
		projector, err := depth.NewProjector(camera, o)
		if err != nil {
			return nil, fmt.Errorf("camera %q: %w", camera.Name, err)
		}
		p.projectors = append(p.projectors, projector)
	}
	if len(cameras) > 1 {
		p.visibility = depth.NewVisibility(cameras)
		if options.Prune {
			p.pruner = depth.NewPruner(cameras)
		}
	}
	return p, nil
}

// clone returns a projection for another goroutine. No camera is learning its background.
func (p *projection) clone() *projection {
	c := *p
	c.projectors, c.cleaned = nil, nil
	for _, projector := range p.projectors {
		c.projectors = append(c.projectors, projector.Clone())
	}
	if p.pruner != nil {
		c.pruner = p.pruner.Clone()
	}
	return &c
}

// learning reports whether a camera learns its background from the next image.
func (p *projection) learning() bool {
	return slices.ContainsFunc(p.projectors, (*depth.Projector).Learning)
}

// project replaces a shot by the points of the cameras' images. An image without Depth means that the camera has no
// image. While a background is learnt, the shot has no points of that camera.
func (p *projection) project(images []depth.Image, into *shot) error {
	into.cloud.Reset()
	into.images, into.rasters = into.images[:0], into.rasters[:0]
	var cleaned []depth.Image
	switch {
	case p.rasters:
		into.rasters = slices.Grow(into.rasters, len(images))[:len(images)]
		cleaned = into.rasters
	case p.pruner != nil:
		p.cleaned = slices.Grow(p.cleaned[:0], len(images))[:len(images)]
		cleaned = p.cleaned
	}
	for i := range images {
		var clean *depth.Image
		if cleaned != nil {
			clean = &cleaned[i]
			clean.CopyFrom(&depth.Image{})
		}
		if len(images[i].Depth) == 0 {
			continue
		}
		if err := p.projectors[i].ProjectCleaned(&images[i], &into.cloud, clean); err != nil {
			return fmt.Errorf("camera %q: %w", p.cameras[i].Name, err)
		}
	}
	if p.pruner != nil {
		p.pruner.Prune(cleaned, &into.cloud)
	}
	if p.visibility != nil {
		p.visibility.Mark(images, &into.cloud)
	}
	if p.images {
		into.images = copyImages(into.images, images)
	}
	return nil
}
