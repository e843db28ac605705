package allocate

import (
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// unseenSlack is the additional angle beyond the edge at which a tile is lowered, relative to the angle at which the
// tile is raised again: an eye at rest moves by a degree or two.
const unseenSlack = 5 * math.Pi / 180

// outOfSight reports whether ViewConfig.Unseen limits a tile because of its angle beyond the edge of the view. The
// receiver's choices are sent for any viewpoint, and VR2Gather's strategies do not use views.
func (a *Allocator) outOfSight(s *visibility, tile *Tile) bool {
	cfg := &a.cfg.View
	if cfg.Unseen == UnseenFull || tile.Choice.Explicit || a.cfg.Strategy != StrategyVolsfu {
		return false
	}
	edge := cfg.UnseenDegrees * math.Pi / 180
	if a.lowered(tile) {
		return s.beyond > edge
	}
	return s.beyond > edge+unseenSlack
}

// lowered reports whether a tile is currently sent at most its lowest quality, or one description.
func (a *Allocator) lowered(tile *Tile) bool {
	if a.ladder.mode == volumetric.ModeDescriptions {
		return tile.Current.Len() <= 1
	}
	return tile.Current.Highest() <= 0
}

// spare removes the options of a tile above the limit for tiles out of sight: off, and with UnseenLowest the cheapest
// other option remain.
func (a *Allocator) spare(it *item) {
	kept := int32(1)
	if a.cfg.View.Unseen == UnseenLowest {
		kept = 2
	}
	if it.count <= kept {
		return
	}
	a.spared += a.options[it.first+it.count-1].rate - a.options[it.first+kept-1].rate
	a.options = a.options[:it.first+kept]
	it.count, it.limit, it.spared = kept, kept-1, true
}
