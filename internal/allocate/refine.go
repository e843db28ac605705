package allocate

import (
	"cmp"
	"slices"
)

// mostNodes bounds a search. A node takes about 10 ns.
const mostNodes = 1 << 12

// search is a branch-and-bound search for a better solution than the hulls give.
//
// With the slope λ at which the budget cuts the hulls, an option is worth value - λ·rate more than its price, and its regret is how much less that is than the
// best of its tile's. Then bound - value = sum of regrets + λ·(rate left over) for every solution: what is to be made small. An option whose regret
// exceeds the gap of the solution at hand is in no better one. Most tiles have one option left then, and are settled.
type search struct {
	open     []openItem
	options  []openOption
	slope    float64
	budget   float64
	gap      float64 // of the best solution known
	enough   float64 // gap at which the search ends
	nodes    int
	improved bool
}

// openItem is a tile that is not settled.
type openItem struct {
	item           int32
	first, count   int32 // in search.options, by ascending regret
	least, most    float64
	leastRest      float64 // sums over this item and those after it
	mostRest       float64
	chosen, picked int32
}

type openOption struct {
	index  int32
	regret float64
	rate   float64
}

// refine improves what was picked for the items, whose value is the gap below the bound.
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

// cheapest is the option of least regret, the one of the highest rate where several have it.
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

// openUp lists the options of an item that a better solution may have. It returns the rate of the only one, if there is but one.
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

// descend tries the options of the item at that depth, with the regret and the rate of those before it.
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
