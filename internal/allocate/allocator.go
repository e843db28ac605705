package allocate

import (
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Allocator computes decisions from scenes. An Allocator keeps only memory between calls, so any number of receivers
// may share one. An Allocator belongs to the goroutine that calls it.
type Allocator struct {
	cfg Config
	solver
	ladder  ladder
	fresh   bool    // no tile of the scene has been allocated before
	chosen  []int32 // items whose quality the receiver chose
	auto    []int32 // all other items
	held    []int32 // the first solution, while another is tried
	spared  float64 // bit/s not sent of tiles that are out of sight or held
	last    int32   // the item that is sent although nothing fits the budget, -1 if something fits
	byTile  [][]Decision
	decided []Decision
}

// New returns an allocator. An invalid configuration results in an error that wraps ErrConfig.
func New(cfg Config) (*Allocator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Allocator{cfg: cfg}, nil
}

// Allocate decides the qualities of each tile. The receiver's choices come first, and are lowered only if they exceed
// the budget. The strategy distributes the rest of the budget over the other tiles. If nothing fits, one tile is sent
// nevertheless. The result is valid until the next call.
func (a *Allocator) Allocate(scene *Scene) Result {
	a.survey(scene)
	budget := float64(max(scene.Budget, 0))
	if a.affordable(budget) {
		for _, i := range a.chosen {
			a.items[i].picked = a.items[i].count - 1
		}
	} else {
		a.settle(a.chosen, budget)
	}
	rate, _ := a.total(a.chosen)
	budget -= rate
	if a.cfg.Strategy == StrategyVolsfu {
		a.settle(a.auto, budget)
	} else {
		a.compare(a.auto, budget)
	}
	a.last = a.keepOne()
	return a.result(scene)
}

// keepOne picks the cheapest option of one item if nothing fits the budget, and returns that item, else -1. keepOne
// prefers the receiver's choices, and among equals the item whose option has the largest gain.
//
// A path without packets has no feedback, and its estimate would never rise. The pacer skips the frames that exceed the
// estimate.
func (a *Allocator) keepOne() int32 {
	for i := range a.items {
		if it := &a.items[i]; a.options[it.first+it.picked].rate > 0 {
			return -1
		}
	}
	for _, items := range [2][]int32{a.chosen, a.auto} {
		best, most := int32(-1), 0.0
		for _, i := range items {
			it := &a.items[i]
			if it.picked == it.count-1 {
				continue
			}
			now := it.first + it.picked
			if gain := a.options[now+1].value - a.options[now].value; best < 0 || gain > most {
				best, most = i, gain
			}
		}
		if best >= 0 {
			a.items[best].picked++
			return best
		}
	}
	return -1
}

// survey lists all tiles with their options and values.
func (a *Allocator) survey(scene *Scene) {
	a.options, a.items = a.options[:0], a.items[:0]
	a.chosen, a.auto = a.chosen[:0], a.auto[:0]
	a.spared = 0
	a.fresh = isFresh(scene)
	eye := newViewer(&a.cfg.View, scene.Viewpoint)
	for i := range scene.Objects {
		object := &scene.Objects[i]
		eye.turnTo(object)
		for j := range object.Tiles {
			tile := &object.Tiles[j]
			seen := eye.look(object, tile)
			value := a.ladder.value(&a.cfg.View, object, tile, seen)
			a.items = append(a.items, item{object: int32(i), tile: int32(j), explicit: tile.Choice.Explicit,
				seen: seen.seen})
			index := int32(len(a.items) - 1)
			it := &a.items[index]
			a.offer(it, tile, &value)
			if a.outOfSight(&seen, tile) {
				a.spare(it)
			}
			cost := a.cfg.SwitchCost
			if seen.edge {
				cost *= edgeCost
			}
			if object.Picture != PictureNone {
				cost *= pictureCost
			}
			a.price(it, tile, &value, cost)
			if a.cfg.Strategy != StrategyVolsfu {
				it.facing = eye.facing(seen.center)
			}
			if it.explicit {
				a.chosen = append(a.chosen, index)
			} else {
				a.auto = append(a.auto, index)
			}
		}
	}
}

func isFresh(scene *Scene) bool {
	for i := range scene.Objects {
		for j := range scene.Objects[i].Tiles {
			if scene.Objects[i].Tiles[j].Current != 0 {
				return false
			}
		}
	}
	return true
}

// affordable reports whether the budget suffices for all of the receiver's choices. As long as a choice is not fully
// sent, the reserve is subtracted first.
func (a *Allocator) affordable(budget float64) bool {
	if !a.fresh && slices.ContainsFunc(a.chosen,
		func(i int32) bool { return a.items[i].current < a.items[i].count-1 }) {
		budget *= 1 - a.cfg.Reserve
	}
	return a.wanted(a.chosen) <= budget
}

// wanted returns the rate of the best options of the items.
func (a *Allocator) wanted(items []int32) (rate float64) {
	for _, i := range items {
		it := &a.items[i]
		rate += a.options[it.first+it.count-1].rate
	}
	return rate
}

// settle picks options for the items: the most valuable ones within the budget less the reserve, or the current ones,
// or the best part of the current ones that fits.
//
// Values include the cost of changes. The reserve prevents that rates which vary by themselves lower a tile soon after
// it was raised. The current options may use the whole budget; if they exceed it they are lowered at once.
func (a *Allocator) settle(items []int32, budget float64) {
	if a.fresh {
		a.solve(items, budget)
		return
	}
	a.solve(items, budget*(1-a.cfg.Reserve))
	_, changed := a.total(items)
	a.held = a.held[:0]
	for _, i := range items {
		it := &a.items[i]
		a.held = append(a.held, it.picked)
		it.picked, it.limit = it.current, it.current
	}
	rate, kept := a.total(items)
	if rate > budget {
		a.solve(items, budget)
		_, kept = a.total(items)
	}
	for n, i := range items {
		it := &a.items[i]
		it.limit = it.count - 1
		if changed > kept {
			it.picked = a.held[n]
		}
	}
}

// result collects the picked options. result allocates memory only if the scene is larger than all before.
func (a *Allocator) result(scene *Scene) Result {
	if cap(a.decided) < len(a.items) {
		a.decided = make([]Decision, len(a.items))
	}
	a.decided, a.byTile = a.decided[:len(a.items)], a.byTile[:0]
	rest := a.decided
	for i := range scene.Objects {
		n := len(scene.Objects[i].Tiles)
		a.byTile = append(a.byTile, rest[:n:n])
		rest = rest[n:]
	}
	for i := range a.items {
		it := &a.items[i]
		reason := ReasonBudget
		if int32(i) != a.last {
			reason = it.reason(a.options)
		}
		a.byTile[it.object][it.tile] = Decision{Qualities: a.options[it.first+it.picked].set, Reason: reason}
	}
	chosen, _ := a.total(a.chosen)
	auto, _ := a.total(a.auto)
	return Result{
		Tiles:  a.byTile,
		Rate:   bitrate(chosen + auto),
		Wanted: bitrate(a.wanted(a.chosen) + a.wanted(a.auto) + a.spared),
	}
}

// reason returns why the item was picked.
func (it *item) reason(options []option) Reason {
	best := it.picked == it.count-1
	switch {
	case it.explicit && best:
		return ReasonChoice
	case it.explicit:
		return ReasonBudget
	case it.spared:
		return ReasonUnseen
	case best || options[it.first+it.picked].set != 0:
		return ReasonAuto
	case it.seen:
		return ReasonBudget
	default:
		return ReasonUnseen
	}
}

func bitrate(rate float64) volumetric.Bitrate { return volumetric.Bitrate(math.Ceil(rate)) }
