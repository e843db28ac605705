package allocate

import (
	"cmp"
	"slices"
)

// mostNodes bounds a search. A node takes about 10 ns.
const mostNodes = 1 << 12

// search is a branch-and-bound search for a better solution than that of the hulls.
//
// Let λ be the slope at which the budget cuts the hulls. The net value of an option is value - λ·rate; the regret is
// the difference to the largest net value of its tile. For every solution, bound - value = sum of regrets + λ·(unused
// rate), which is to be minimised. An option whose regret exceeds the gap of the known solution is in no better
// solution. Most tiles then have a single option left and are settled.
type search struct {
	open     []openItem
	options  []openOption
	slope    float64
	budget   float64
	gap      float64 // of the best known solution
	enough   float64 // gap at which the search ends
	nodes    int
	improved bool
}

// openItem is a tile that is not settled.
type openItem struct {
	item           int32
	first, count   int32 // in search.options, by ascending regret
	least, most    float64
	leastRest      float64 // sums over this item and all later ones
	mostRest       float64
	chosen, picked int32
}

type openOption struct {
	index  int32
	regret float64
	rate   float64
}

// refine improves the picked options of the items, whose value is gap below bound.
func (s *solver) refine(items []int32, budget, bound, gap, slope float64) {
	q := &s.search
	q.open, q.options = q.open[:0], q.options[:0]
	q.slope, q.gap, q.enough, q.nodes, q.improved = slope, gap, max(goodEnough*bound, 0), mostNodes, false
	q.budget = budget
	for _, i := range items {
		if settled, rate := s.openUp(i); settled {
			q.budget -= rate
		}
	}
	slices.SortFunc(q.open, func(a, b openItem) int {
		return cmp.Or(cmp.Compare(b.most-b.least, a.most-a.least), cmp.Compare(a.item, b.item))
	})
	var least, most float64
	for k := len(q.open) - 1; k >= 0; k-- {
		o := &q.open[k]
		least += o.least
		most += o.most
		o.leastRest, o.mostRest = least, most
	}
	q.descend(0, 0, 0)
	if !q.improved {
		return
	}
	for _, i := range items {
		it := &s.items[i]
		it.picked = s.cheapest(it, slope)
	}
	for _, o := range q.open {
		s.items[o.item].picked = o.picked
	}
}

// cheapest returns the option of least regret, and of several the one with the highest rate.
func (s *solver) cheapest(it *item, slope float64) int32 {
	best, bestWorth := int32(0), 0.0
	for j := int32(0); j <= it.limit; j++ {
		o := &s.options[it.first+j]
		if worth := o.value - slope*o.rate; j == 0 || worth >= bestWorth {
			best, bestWorth = j, worth
		}
	}
	return best
}

// openUp lists the options of an item that may be in a better solution. If there is only one, it returns true and the
// rate of that option.
func (s *solver) openUp(index int32) (settled bool, rate float64) {
	q, it := &s.search, &s.items[index]
	best := &s.options[it.first+s.cheapest(it, q.slope)]
	worth := best.value - q.slope*best.rate
	open := openItem{item: index, first: int32(len(q.options)), least: best.rate, most: best.rate}
	for j := int32(0); j <= it.limit; j++ {
		o := &s.options[it.first+j]
		regret := max(worth-(o.value-q.slope*o.rate), 0)
		if regret >= q.gap {
			continue
		}
		q.options = append(q.options, openOption{index: j, regret: regret, rate: o.rate})
		open.least, open.most = min(open.least, o.rate), max(open.most, o.rate)
	}
	open.count = int32(len(q.options)) - open.first
	if open.count == 1 {
		q.options = q.options[:open.first]
		return true, best.rate
	}
	options := q.options[open.first:]
	for i := 1; i < len(options); i++ {
		for j := i; j > 0 && options[j].regret < options[j-1].regret; j-- {
			options[j], options[j-1] = options[j-1], options[j]
		}
	}
	q.open = append(q.open, open)
	return false, 0
}

// descend tries the options of the item at a depth, given the regret and the rate of the items before.
func (q *search) descend(depth int, regret, rate float64) {
	q.nodes--
	if depth == len(q.open) {
		if gap := regret + q.slope*(q.budget-rate); rate <= q.budget && gap < q.gap {
			q.gap, q.improved = gap, true
			for k := range q.open {
				q.open[k].picked = q.open[k].chosen
			}
		}
		return
	}
	o := &q.open[depth]
	if regret+q.slope*max(q.budget-rate-o.mostRest, 0) >= q.gap {
		return
	}
	for _, option := range q.options[o.first : o.first+o.count] {
		if q.nodes <= 0 || q.gap <= q.enough || regret+option.regret >= q.gap {
			return
		}
		if rate+option.rate+o.leastRest-o.least > q.budget {
			continue
		}
		o.chosen = option.index
		q.descend(depth+1, regret+option.regret, rate+option.rate)
	}
}
