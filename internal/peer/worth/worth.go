// Package worth thins out clouds to the points that are worth sending to somebody who looks at them from a place: fewer
// of what is far away, and of what is seen from the corner of the eye.
//
// A Sampler belongs to one goroutine, and so does a Source, which thins out what another one captures for an audience
// in one place.
package worth

import (
	"context"
	"math"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Config says what is worth how much. Without Regions and Distance everything is.
type Config struct {
	// Regions are those of the view, of which each point is in one; nil if the gaze does not matter.
	Regions *pointcloud.FieldOfView
	// Distance is how far away in metres all points are worth sending; of those farther away the share falls with the
	// square, to Least. 0 is any distance.
	Distance, Least float64
}

// Matters reports whether anything is thinned out.
func (c Config) Matters() bool { return c.Regions != nil || c.Distance != 0 }

// Sampler thins out clouds. It keeps its memory.
type Sampler struct {
	detail  *pointcloud.LevelOfDetail
	regions *pointcloud.Regions
	// near and seen are what is left after each.
	near, seen pointcloud.Cloud
}

// New makes a sampler. Errors wrap pointcloud.ErrDetail or pointcloud.ErrView.
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

// Sample gives the points that are worth sending, in an order that says nothing about places if theirs does not. They
// are the cloud itself, or are valid until the next call.
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

// Facing is the view of somebody at a place who looks at the middle of a box.
func Facing(place [3]float32, box volumetric.BoundingBox) pointcloud.Viewpoint {
	v := pointcloud.Viewpoint{Position: place}
	for axis := range 3 {
		v.Forward[axis] = box.Min[axis]/2 + box.Max[axis]/2 - place[axis]
	}
	// Whoever stands right there looks ahead.
	if v.Forward == [3]float32{} {
		v.Forward[2] = -1
	}
	return v
}

// Source has what another one captures thinned out.
type Source struct {
	capture.Source
	sampler *Sampler
	from    pointcloud.Viewpoint
}

// NewSource thins out what a source captures, which it closes, for somebody who looks from a place at the middle of
// what there may be. Errors are those of New.
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
