package capture

import (
	"context"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// footage is frames in files. Load replaces the shot by one frame and names the file in its error; several goroutines call it at once. Coordinates are finite.
type footage interface {
	Len() int
	Load(index int, into *shot) error
	Close() error
}

// shot is what there is of a frame.
type shot struct {
	cloud  pointcloud.Cloud
	images []depth.Image // empty unless they were asked for
}

// pointBytes and pixelBytes are the memory of one point, three float32 and three bytes, and of one pixel, a depth and a colour. Labels and sources
// take two bytes each.
const (
	pointBytes = 15
	pixelBytes = 5
	labelBytes = 2
)

// bytes is the memory that a copy of the shot takes.
func (s *shot) bytes() int64 {
	size := s.cloud.Len()*pointBytes + (len(s.cloud.Labels)+len(s.cloud.Sources))*labelBytes
	for _, m := range s.images {
		size += len(m.Depth)*pixelBytes + len(m.Labels)*labelBytes
	}
	return int64(size)
}

// copyFrom makes the shot an equal of another, in memory of its own that is used again.
func (s *shot) copyFrom(other *shot) {
	s.cloud.CopyFrom(&other.cloud)
	s.images = copyImages(s.images, other.images)
}

func copyImages(into, from []depth.Image) []depth.Image {
	into = slices.Grow(into[:0], len(from))[:len(from)]
	for i := range from {
		into[i].CopyFrom(&from[i])
	}
	return into
}

// clip is footage in a loop, as far as possible from memory.
type clip struct {
	footage footage
	limit   int // points per frame, 0 = all
	seed    int
	kept    []*shot // by frame, nil where it did not fit into memory
	box     volumetric.BoundingBox
	points  int   // of the largest frame
	coming  []int // frames of the read-ahead window that are not in memory
	ahead   readAhead
}

// shuffled is footage whose clouds come in random order already; one that is larger than wanted is cut off.
type shuffled interface{ shuffled() }

// newClip loads every frame once, keeps as many as fit into memory, and measures the box that holds them all.
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
	c.coming = c.coming[:0]
	for step := range readAheadFrames {
		if coming := (index + step) % len(c.kept); c.kept[coming] == nil {
			c.coming = append(c.coming, coming)
		}
	}
	for _, coming := range c.coming {
		c.ahead.want(coming, c.coming)
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
	return nil
}

// close implements content.
func (c *clip) close() error {
	c.ahead.wait()
	c.kept = nil
	return c.footage.Close()
}
