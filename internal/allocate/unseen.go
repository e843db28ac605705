package allocate

import (
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// unseenSlack is how much further beyond the edge a tile has to be before it is lowered than it has to be before it is raised again: an eye at rest moves by a degree
// or two.
const unseenSlack = 5 * math.Pi / 180

// outOfSight tells whether a tile is so far beyond the edge of the view that it is sent no more than ViewConfig.Unseen says. What the receiver chose is sent wherever
// it looks, and VR2Gather's strategies know nothing of views.
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

// lowered tells whether a tile is sent no more than its lowest quality already, or one description.
func (a *Allocator) lowered(tile *Tile) bool {
	if a.ladder.mode == volumetric.ModeDescriptions {
		return tile.Current.Len() <= 1
	}
	return tile.Current.Highest() <= 0
}

// spare takes the options of a tile away that are more than what tiles out of sight are sent: what costs nothing, and the cheapest that does.
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
