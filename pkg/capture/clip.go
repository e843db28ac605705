package capture

import (
	"context"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// footage is a sequence of frames in files. Load replaces the shot by one frame; the error names the file. Several
// goroutines call Load concurrently. Coordinates are finite.
type footage interface {
	Len() int
	Load(index int, into *shot) error
	Close() error
}

// shot is the content of one frame.
type shot struct {
	cloud   pointcloud.Cloud
	images  []depth.Image // empty unless requested
	rasters []depth.Image // empty unless requested
}

// pointBytes is the memory of one point: three float32 and three bytes. pixelBytes is the memory of
// one pixel: a depth and a colour. Labels and sources take two bytes each.
const (
	pointBytes = 15
	pixelBytes = 5
	labelBytes = 2
)

// bytes returns the memory of a copy of the shot.
func (s *shot) bytes() int64 {
	size := s.cloud.Len()*pointBytes + (len(s.cloud.Labels)+len(s.cloud.Sources))*labelBytes
	for _, images := range [][]depth.Image{s.images, s.rasters} {
		for _, m := range images {
			size += len(m.Depth)*pixelBytes + len(m.Labels)*labelBytes
		}
	}
	return int64(size)
}

// copyFrom makes the shot a copy of another shot and reuses its own memory.
func (s *shot) copyFrom(other *shot) {
	s.cloud.CopyFrom(&other.cloud)
	s.images = copyImages(s.images, other.images)
	s.rasters = copyImages(s.rasters, other.rasters)
}

func copyImages(into, from []depth.Image) []depth.Image {
	into = slices.Grow(into[:0], len(from))[:len(from)]
	for i := range from {
		into[i].CopyFrom(&from[i])
	}
	return into
}

// clip plays footage in a loop, from memory as far as possible.
type clip struct {
	footage  footage
	limit    int // points per frame, 0 = all
	seed     int
	kept     []*shot // by frame, nil if the frame did not fit into memory
	box      volumetric.BoundingBox
	points   int   // of the largest frame
	upcoming []int // frames of the read-ahead window that are not in memory
	ahead    readAhead
}

// shuffled marks footage whose clouds are already in random order. A cloud larger than the limit is
// truncated.
type shuffled interface{ shuffled() }

// newClip loads every frame once, keeps as many frames as fit into memory, and computes the box
// that contains all frames.
func newClip(frames footage, options Options) (*clip, error) {
	c := &clip{footage: frames, limit: options.Points, seed: options.Seed, kept: make([]*shot, frames.Len())}
	c.ahead.load = c.load
	found := (&survey{clip: c, memory: int64(options.MemoryLimit)}).run()
	if found.err != nil {
		return nil, found.err
	}
	c.box, c.points = found.box, found.points
	if c.points == 0 {
		return nil, fmt.Errorf("%w: all %d frames are empty", ErrNoPoints, frames.Len())
	}
	return c, nil
}

func (c *clip) load(index int, into *shot) error {
	if err := c.footage.Load(index, into); err != nil {
		return err
	}
	if _, ok := c.footage.(shuffled); !ok {
		scatter(&into.cloud, c.limit, c.seed, index)
	} else if c.limit > 0 && c.limit < into.cloud.Len() {
		into.cloud.Truncate(c.limit)
	}
	return nil
}

// render implements content.
func (c *clip) render(ctx context.Context, number int64, into *Frame) error {
	index := int(number % int64(len(c.kept)))
	c.upcoming = c.upcoming[:0]
	for step := range readAheadFrames {
		if coming := (index + step) % len(c.kept); c.kept[coming] == nil {
			c.upcoming = append(c.upcoming, coming)
		}
	}
	for _, coming := range c.upcoming {
		c.ahead.want(coming, c.upcoming)
	}
	found := c.kept[index]
	if found == nil {
		var err error
		if found, err = c.ahead.take(ctx, index); err != nil {
			return err
		}
	}
	into.Cloud.CopyFrom(&found.cloud)
	into.Images = copyImages(into.Images, found.images)
	into.Rasters = copyImages(into.Rasters, found.rasters)
	return nil
}

// close implements content.
func (c *clip) close() error {
	c.ahead.wait()
	c.kept = nil
	return c.footage.Close()
}
