package allocate

import (
	"cmp"
	"slices"
)

// compare picks options for the items with one of VR2Gather's strategies.
//
// All strategies begin with the lowest quality of every tile and raise tiles in the order of facing: the cosine between
// the directions from the middle of the object to the eye and to the tile. In VR2Gather each object has a budget of its
// own, which is a number in a configuration; here all objects share the receiver's budget. In VR2Gather the lowest
// qualities are always sent; here tiles are off, the last in the order first, if the lowest qualities do not fit.
//
//	uniform          one step for each tile in turn, as long as any fits
//	greedy           the first tile as far as possible, then the second, and so on
//	hybrid           uniform among the tiles that face the eye, then among the others
//	weighted_hybrid  each tile as far as its share of the budget permits, by 1 + facing; then greedy with the rest
//	front            the best quality for the first tile of each object, the lowest for the others
func (a *Allocator) compare(items []int32, budget float64) {
	slices.SortFunc(items, func(i, j int32) int {
		return cmp.Or(cmp.Compare(a.items[j].facing, a.items[i].facing), cmp.Compare(i, j))
	})
	p := purse{a: a, left: budget}
	for _, i := range items {
		it := &a.items[i]
		it.picked = 0
		if a.options[it.first].set == 0 {
			p.raise(it)
		}
	}
	switch a.cfg.Strategy {
	case StrategyUniform:
		p.inTurn(items, func(*item) bool { return true })
	case StrategyGreedy:
		p.oneByOne(items)
	case StrategyHybrid:
		p.inTurn(items, func(it *item) bool { return it.facing >= 0 })
		p.inTurn(items, func(it *item) bool { return it.facing < 0 })
	case StrategyWeightedHybrid:
		p.byShare(items, budget)
		p.oneByOne(items)
	case StrategyFront:
		p.front(items)
	default:
		panic("allocate: no implementation of strategy " + a.cfg.Strategy)
	}
}

// purse is the rest of a budget.
type purse struct {
	a    *Allocator
	left float64
}

// raise raises a tile by one step if there is one and it fits, and reports whether it did.
func (p *purse) raise(it *item) bool {
	if it.picked == it.count-1 {
		return false
	}
	cost := p.a.options[it.first+it.picked+1].rate - p.a.options[it.first+it.picked].rate
	if cost > p.left {
		return false
	}
	it.picked++
	p.left -= cost
	return true
}

// on reports whether a tile is sent at all. Tiles that are off did not fit at their lowest quality, and are not raised.
func (p *purse) on(it *item) bool { return p.a.options[it.first+it.picked].set != 0 }

func (p *purse) inTurn(items []int32, takesPart func(*item) bool) {
	for raised := true; raised; {
		raised = false
		for _, i := range items {
			if it := &p.a.items[i]; p.on(it) && takesPart(it) && p.raise(it) {
				raised = true
			}
		}
	}
}

func (p *purse) oneByOne(items []int32) {
	for _, i := range items {
		for it := &p.a.items[i]; p.on(it) && p.raise(it); {
		}
	}
}

func (p *purse) byShare(items []int32, budget float64) {
	var sum float64
	for _, i := range items {
		sum += 1 + p.a.items[i].facing
	}
	for _, i := range items {
		it := &p.a.items[i]
		share := budget * (1 + it.facing) / sum
		for p.on(it) && it.picked < it.count-1 && p.a.options[it.first+it.picked+1].rate <= share && p.raise(it) {
		}
	}
}

func (p *purse) front(items []int32) {
	for n, i := range items {
		it := &p.a.items[i]
		first := !slices.ContainsFunc(items[:n], func(j int32) bool { return p.a.items[j].object == it.object })
		for first && p.on(it) && p.raise(it) {
		}
	}
}
