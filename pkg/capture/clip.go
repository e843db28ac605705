package capture

import (
	"context"
	"fmt"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// footage is a folder of frames. Load replaces the cloud's points by those of one frame and names the file in its error; several
// goroutines call it at once. Coordinates are finite.
type footage interface {
	Len() int
	Load(index int, into *pointcloud.Cloud) error
}

// pointBytes is the memory of one point: three float32 and three bytes.
const pointBytes = 15

// clip is footage in a loop, as far as possible from memory.
type clip struct {
	footage footage
	limit   int // points per frame, 0 = all
	seed    int
	kept    []*pointcloud.Cloud // by frame, nil where it did not fit into memory
	box     volumetric.BoundingBox
	points  int   // of the largest frame
	coming  []int // frames of the read-ahead window that are not in memory
	ahead   readAhead
}

// newClip loads every frame once, keeps as many as fit into memory, and measures the box that holds them all.
func newClip(frames footage, options Options) (*clip, error) {
	c := &clip{footage: frames, limit: options.Points, seed: options.Seed, kept: make([]*pointcloud.Cloud, frames.Len())}
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

func (c *clip) load(index int, into *pointcloud.Cloud) error {
	if err := c.footage.Load(index, into); err != nil {
		return err
	}
	scatter(into, c.limit, c.seed, index)
	return nil
}

func clone(cloud *pointcloud.Cloud) *pointcloud.Cloud {
	kept := &pointcloud.Cloud{Positions: make([][3]float32, cloud.Len()), Colors: make([][3]uint8, cloud.Len())}
	copy(kept.Positions, cloud.Positions)
	copy(kept.Colors, cloud.Colors)
	return kept
}

// render implements content.
func (c *clip) render(ctx context.Context, number int64, into *pointcloud.Cloud) error {
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
	cloud := c.kept[index]
	if cloud == nil {
		var err error
		if cloud, err = c.ahead.take(ctx, index); err != nil {
			return err
		}
	}
	into.Positions = append(into.Positions[:0], cloud.Positions...)
	into.Colors = append(into.Colors[:0], cloud.Colors...)
	return nil
}

// close implements content.
func (c *clip) close() {
	c.ahead.wait()
	c.kept = nil
}
