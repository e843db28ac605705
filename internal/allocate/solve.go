package allocate

import "slices"

// goodEnough is the accepted relative difference to the bound. The target is 2 %: this leaves room for searches that
// give up.
const goodEnough = 0.01

// mostFills bounds the passes over all options that use the rest of the budget. Each pass makes one step, and few steps
// are small enough.
const mostFills = 16

// mostForced bounds the number of steps that are tried although they did not fit.
const mostForced = 8

// step is the change of a tile from one option to the next one on the concave hull of its options.
type step struct {
	slope       float64 // value per bit/s
	rate, value float64 // differences
	item        int32
	from, to    int32
}

// rank is the sort key of a step: sorting the steps themselves would move three times as much memory.
type rank struct {
	slope float64
	step  int32
}

// solver finds the options with the largest sum of values within a budget: a multiple-choice knapsack.
//
// The steps along the hulls, steepest first, are the best use of every bit, except for the step that the budget cuts:
// no solution is better than the value reached there plus slope × the rest of the budget. With many tiles the
// difference is small. With few tiles, fill uses the rest, force makes room for large steps, and refine searches, each
// only if the solution is not yet close enough to the bound.
type solver struct {
	options []option
	items   []item
	steps   []step
	order   []rank // of the steps, steepest first
	kept    []int32
	search  search
}

// solve picks an option for each of the items within the budget.
func (s *solver) solve(items []int32, budget float64) {
	s.steps = s.steps[:0]
	var top float64
	for _, i := range items {
		s.hull(i)
		it := &s.items[i]
		top += s.options[it.first+it.limit].rate
	}
	s.order = s.order[:0]
	for i := range s.steps {
		s.order = append(s.order, rank{slope: s.steps[i].slope, step: int32(i)})
	}
	if top > budget {
		slices.SortFunc(s.order, func(a, b rank) int {
			switch {
			case a.slope > b.slope:
				return -1
			case a.slope < b.slope:
				return 1
			default:
				return int(a.step - b.step)
			}
		})
	}
	value, bound, cut := s.climb(items, budget, nil)
	if cut == len(s.order) {
		return
	}
	if bound-value > goodEnough*bound {
		value = s.force(items, budget, value, cut)
	}
	if bound-value > goodEnough*bound {
		s.refine(items, budget, bound, bound-value, s.order[cut].slope)
	}
}

// climb makes the steps that fit, steepest first, and uses the rest of the budget. With forced, that step's item starts
// at the step's option. climb returns the value, the bound and the index of the first step that did not fit; the last
// two are meaningful only without forced.
func (s *solver) climb(items []int32, budget float64, forced *step) (value, bound float64, cut int) {
	for _, i := range items {
		it := &s.items[i]
		it.picked = 0
		if forced != nil && forced.item == i {
			it.picked = forced.to
		}
	}
	rate, value := s.total(items)
	left := budget - rate
	cut = len(s.order)
	for i := range s.order {
		st := &s.steps[s.order[i].step]
		if it := &s.items[st.item]; it.picked == st.from && st.rate <= left {
			it.picked = st.to
			left -= st.rate
			value += st.value
		} else if cut == len(s.order) {
			cut = i
			bound = value + s.order[i].slope*left
		}
	}
	return value + s.fill(items, left), bound, cut
}

// force tries the first steps that did not fit: each in place of as many less steep steps before it as necessary. This
// serves tiles that are larger than the others. force returns the best value.
func (s *solver) force(items []int32, budget, value float64, cut int) float64 {
	s.keep(items)
	tries := mostForced
	for i := cut; i < len(s.order) && tries > 0; i++ {
		st := s.steps[s.order[i].step]
		it := &s.items[st.item]
		if s.options[it.first+st.to].rate > budget {
			continue
		}
		tries--
		if tried, _, _ := s.climb(items, budget, &st); tried > value {
			value = tried
			s.keep(items)
		}
	}
	for n, i := range items {
		s.items[i].picked = s.kept[n]
	}
	return value
}

// keep saves the picked options.
func (s *solver) keep(items []int32) {
	s.kept = s.kept[:0]
	for _, i := range items {
		s.kept = append(s.kept, s.items[i].picked)
	}
}

// hull appends the steps along the upper concave hull of an item's options.
func (s *solver) hull(index int32) {
	it := &s.items[index]
	options := s.options[it.first : it.first+it.limit+1]
	base := len(s.steps)
	for j := 1; j < len(options); j++ {
		from := int32(0)
		if len(s.steps) > base {
			from = s.steps[len(s.steps)-1].to
		}
		next := s.between(options, index, from, int32(j))
		for len(s.steps) > base && next.slope >= s.steps[len(s.steps)-1].slope {
			from = s.steps[len(s.steps)-1].from
			s.steps = s.steps[:len(s.steps)-1]
			next = s.between(options, index, from, int32(j))
		}
		if next.value > 0 {
			s.steps = append(s.steps, next)
		}
	}
}

func (*solver) between(options []option, index, from, to int32) step {
	rate, value := options[to].rate-options[from].rate, options[to].value-options[from].value
	return step{slope: value / rate, rate: rate, value: value, item: index, from: from, to: to}
}

// fill uses the rest of the budget for single changes, the most valuable first, and returns their gain.
func (s *solver) fill(items []int32, left float64) (gained float64) {
	for range mostFills {
		best, bestTo, bestGain := int32(-1), int32(0), 0.0
		for _, i := range items {
			it := &s.items[i]
			now := &s.options[it.first+it.picked]
			for j := it.picked + 1; j <= it.limit; j++ {
				o := &s.options[it.first+j]
				if o.rate-now.rate > left {
					break
				}
				if gain := o.value - now.value; gain > bestGain {
					best, bestTo, bestGain = i, j, gain
				}
			}
		}
		if best < 0 {
			break
		}
		it := &s.items[best]
		left -= s.options[it.first+bestTo].rate - s.options[it.first+it.picked].rate
		it.picked = bestTo
		gained += bestGain
	}
	return gained
}

// total returns the rate and the value of the picked options.
func (s *solver) total(items []int32) (rate, value float64) {
	for _, i := range items {
		it := &s.items[i]
		o := &s.options[it.first+it.picked]
		rate += o.rate
		value += o.value
	}
	return rate, value
}
