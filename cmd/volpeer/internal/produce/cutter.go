package produce

import (
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// cutter cuts a captured cloud into tiles, once per frame, and tiles into qualities. The order of a capture's points is
// independent of the positions, and tiling preserves the order. Therefore every contiguous range of a tile is an even
// sample and needs no copy. Disjoint ranges are complementary, which makes them descriptions.
type cutter struct {
	tiler  pointcloud.Tiler
	levels []ladder.Level
	mode   volumetric.Mode
	// importance is nil for even samples.
	importance *pointcloud.ImportanceConfig
	// sizing is nil if reduced qualities are not made of voxels.
	sizing *sizing

	splitter pointcloud.Splitter
	tiles    []pointcloud.Cloud
	// stretches has the range of a tile's points for each quality in this frame.
	stretches []stretch
}

// stretch is a range of a sequence, in fractions of the length.
type stretch struct{ begin, end float64 }

func newCutter(c Config) (*cutter, error) {
	tiler, err := c.Tiling.Open(c.Box)
	if err != nil {
		return nil, err
	}
	if c.Importance != nil && c.Mode == volumetric.ModeDescriptions {
		return nil, fmt.Errorf("%w: descriptions are even samples, expected no sampling by importance", ErrConfig)
	}
	if c.Voxels && (c.Mode == volumetric.ModeDescriptions || c.Importance != nil) {
		return nil, fmt.Errorf("%w: voxels cannot be combined with descriptions or with sampling by "+
			"importance", ErrConfig)
	}
	for _, l := range c.Levels {
		if l.Rate > 0 && c.Mode == volumetric.ModeDescriptions {
			return nil, fmt.Errorf("%w: quality %q has a bitrate, expected points or a share for "+
				"descriptions", ErrConfig,
				l.Name)
		}
		if l.Voxel > 0 && c.Mode == volumetric.ModeDescriptions {
			return nil, fmt.Errorf("%w: quality %q has voxels, expected points or a share for descriptions", ErrConfig,
				l.Name)
		}
	}
	cut := &cutter{
		tiler:      tiler,
		levels:     c.Levels,
		mode:       c.Mode,
		importance: c.Importance,
		tiles:      make([]pointcloud.Cloud, tiler.Len()),
		stretches:  make([]stretch, len(c.Levels)),
	}
	if c.Voxels {
		cut.sizing = newSizing(len(c.Levels))
	}
	return cut, nil
}

// split takes a new frame.
func (c *cutter) split(cloud *pointcloud.Cloud) error {
	if err := c.splitter.Split(c.tiler, cloud, c.tiles); err != nil {
		return err
	}
	sum := 0.0
	for _, l := range c.levels {
		sum += l.Portion(cloud.Len())
	}
	// If the descriptions ask for more points than there are, the shares are scaled to the available points.
	scale := 1 / max(1, sum)
	at := 0.0
	for q, l := range c.levels {
		if c.mode == volumetric.ModeDescriptions {
			next := at + scale*l.Portion(cloud.Len())
			c.stretches[q] = stretch{at, next}
			at = next
		} else {
			c.stretches[q] = stretch{0, l.Portion(cloud.Len())}
		}
		if c.sizing != nil && l.Voxel == 0 {
			if err := c.sizing.aim(q, cloud, round(l.Portion(cloud.Len()), cloud.Len())); err != nil {
				return err
			}
		}
	}
	return nil
}

// scratch is the memory that one worker needs to make a quality of a tile.
type scratch struct {
	voxels     pointcloud.VoxelGrid
	importance *pointcloud.Importance // nil for even samples
	cloud      pointcloud.Cloud
	view       pointcloud.Cloud
}

// equip allocates the memory of a worker.
func (c *cutter) equip(s *scratch) (err error) {
	if c.importance != nil {
		s.importance, err = pointcloud.NewImportance(*c.importance)
	}
	return err
}

// part returns one tile at one quality. The cloud is valid until the scratch is used again or the next frame is split.
func (c *cutter) part(tile, q int, s *scratch) (*pointcloud.Cloud, error) {
	cloud := &c.tiles[tile]
	if edge := max(c.levels[q].Voxel, c.sizing.edge(q)); edge > 0 {
		if err := s.voxels.Voxelize(cloud, &s.cloud, edge); err != nil {
			return nil, err
		}
		return &s.cloud, nil
	}
	begin, end := c.stretches[q].of(cloud.Len())
	if c.mode == volumetric.ModeAlternatives && end == 0 && cloud.Len() > 0 {
		// A tile with points keeps at least one point, so that no tile disappears at a low quality.
		end = 1
	}
	if s.importance != nil && end < cloud.Len() {
		s.importance.Sample(cloud, &s.cloud, end)
		return &s.cloud, nil
	}
	s.view = cloud.View(begin, end)
	return &s.view, nil
}

// of returns the bounds of the range in a sequence of n elements. Adjacent ranges round equally, so that every element
// is in exactly one range.
func (s stretch) of(n int) (begin, end int) {
	return round(s.begin, n), round(s.end, n)
}

func round(fraction float64, n int) int { return min(n, int(math.Round(fraction*float64(n)))) }
