// Package lod reduces point clouds for a viewer at a given position: fewer points at large distances (level of detail)
// and in the periphery of the view.
//
// A Sampler is owned by one goroutine, and so is a Source, which reduces the clouds of another source for an audience
// at one position.
package lod

import (
	"context"
	"math"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Config configures a sampler. Without Regions and Distance, all points are kept.
type Config struct {
	// Regions are the regions of the view, which partition the points; nil if the view direction is ignored.
	Regions *pointcloud.FieldOfView
	// Distance is the distance in metres up to which all points are kept. Beyond it, the kept fraction decreases with
	// the square of the distance down to Least. 0 means that the distance is ignored.
	Distance, Least float64
}

// Reduces reports whether points are removed from clouds.
func (c Config) Reduces() bool { return c.Regions != nil || c.Distance != 0 }

// Sampler reduces clouds. A Sampler reuses its memory.
type Sampler struct {
	detail  *pointcloud.LevelOfDetail
	regions *pointcloud.Regions
	// near and seen are the results of detail and of regions.
	near, seen pointcloud.Cloud
}

// New returns a sampler. Errors wrap pointcloud.ErrDetail or pointcloud.ErrView.
func New(c Config) (*Sampler, error) {
	s := &Sampler{}
	var err error
	if c.Distance != 0 {
		if s.detail, err = pointcloud.NewLevelOfDetail(float32(c.Distance), float32(c.Least)); err != nil {
			return nil, err
		}
	}
	if c.Regions != nil {
		if s.regions, err = pointcloud.NewRegions(*c.Regions); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Sample returns the points that are kept for a viewpoint. If the order of the input is independent of positions, so is
// the order of the result. The result is the cloud itself, or is valid until the next call.
func (s *Sampler) Sample(cloud *pointcloud.Cloud, from pointcloud.Viewpoint) *pointcloud.Cloud {
	if s.detail != nil {
		s.detail.Sample(cloud, &s.near, from.Position)
		cloud = &s.near
	}
	if s.regions != nil {
		s.regions.Sample(cloud, &s.seen, from, math.MaxInt)
		cloud = &s.seen
	}
	return cloud
}

// Facing returns the view from a position towards the centre of a box.
func Facing(place [3]float32, box volumetric.BoundingBox) pointcloud.Viewpoint {
	v := pointcloud.Viewpoint{Position: place}
	for axis := range 3 {
		v.Forward[axis] = box.Min[axis]/2 + box.Max[axis]/2 - place[axis]
	}
	// A viewer at the centre looks along -z.
	if v.Forward == [3]float32{} {
		v.Forward[2] = -1
	}
	return v
}

// Source reduces the clouds of another source.
type Source struct {
	capture.Source
	sampler *Sampler
	from    pointcloud.Viewpoint
}

// NewSource returns a source that reduces the clouds of another one for a viewer who looks from a position at the
// centre of the source's box. Close closes the other source. Errors are those of New.
func NewSource(source capture.Source, c Config, place [3]float32) (*Source, error) {
	sampler, err := New(c)
	if err != nil {
		return nil, err
	}
	return &Source{Source: source, sampler: sampler, from: Facing(place, source.Info().Box)}, nil
}

// Read implements capture.Source.
func (s *Source) Read(ctx context.Context, frame *capture.Frame) error {
	if err := s.Source.Read(ctx, frame); err != nil {
		return err
	}
	if left := s.sampler.Sample(&frame.Cloud, s.from); left != &frame.Cloud {
		frame.Cloud, *left = *left, frame.Cloud
	}
	return nil
}
