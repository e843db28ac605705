package allocate

import "github.com/volsfu/volsfu/pkg/volumetric"

// mostSubsets is the largest number of descriptions for which every subset is an option. More descriptions are added in
// the order of their gain per bit.
const mostSubsets = 4

// option is one way of sending a tile.
type option struct {
	set     QualitySet
	rate    float64 // bit/s
	utility float64
	// value is the utility less the cost of the change to this option.
	value float64
}

// item is a tile with its options, which are sorted by ascending rate and utility in the allocator's list. The first
// option is off, or has no cost.
type item struct {
	object, tile int32
	first, count int32 // index in the list of options
	limit        int32 // only options up to this one may be picked
	current      int32 // current option of the tile
	picked       int32
	explicit     bool
	seen         bool
	spared       bool // options were removed because the tile is out of sight
	facing       float64
}

// offer adds the options of a tile, within the receiver's choice.
func (a *Allocator) offer(it *item, tile *Tile, value *utility) {
	l := &a.ladder
	allowed, chosen := Lowest(l.count), QualitySet(0)
	if it.explicit {
		chosen = l.chosen(tile.Choice.Qualities)
		allowed = chosen
		if l.mode != volumetric.ModeDescriptions {
			allowed = Lowest(int(chosen.Highest()) + 1)
		}
	}
	it.first = int32(len(a.options))
	a.add(0, value)
	switch {
	case l.mode != volumetric.ModeDescriptions:
		for q := range allowed.Each {
			a.add(1<<q, value)
		}
	case allowed.Len() <= mostSubsets:
		for set := allowed; set != 0; set = (set - 1) & allowed {
			a.add(set, value)
		}
	default:
		a.addPrefixes(allowed, value)
	}
	a.prune(it, chosen)
	it.count = int32(len(a.options)) - it.first
	it.limit = it.count - 1
}

// chosen returns the existing part of a choice. A quality beyond the highest is replaced by the highest.
func (l *ladder) chosen(set QualitySet) QualitySet {
	there := set & Lowest(l.count)
	if there != set && l.count > 0 {
		there |= 1 << (l.count - 1)
	}
	if l.mode != volumetric.ModeDescriptions && there != 0 {
		there = 1 << there.Highest()
	}
	return there
}

func (a *Allocator) add(set QualitySet, value *utility) {
	rate, detail := a.ladder.of(set)
	a.options = append(a.options, option{set: set, rate: rate, utility: value.of(detail)})
}

// addPrefixes adds descriptions one by one, in the order of gain per bit. Random parts of one cloud all have the same
// gain, and keep their order.
func (a *Allocator) addPrefixes(allowed QualitySet, value *utility) {
	var set QualitySet
	for set != allowed {
		best := volumetric.QualityOff
		for q := range (allowed &^ set).Each {
			if best < 0 || a.ladder.detail[q]*a.ladder.rate[best] > a.ladder.detail[best]*a.ladder.rate[q] {
				best = q
			}
		}
		set |= 1 << best
		a.add(set, value)
	}
}

// prune sorts the options of a tile by rate and removes options that are dominated by another at no higher rate. The
// chosen option is kept, as the last.
func (a *Allocator) prune(it *item, chosen QualitySet) {
	options := a.options[it.first:]
	for i := 1; i < len(options); i++ {
		for j := i; j > 0 && less(&options[j], &options[j-1]); j-- {
			options[j], options[j-1] = options[j-1], options[j]
		}
	}
	kept := 0
	for i := range options {
		o := options[i]
		if kept > 0 && o.utility <= options[kept-1].utility && !(it.explicit && o.set == chosen) {
			continue
		}
		if kept > 0 && o.rate == options[kept-1].rate {
			kept--
		}
		options[kept] = o
		kept++
		if it.explicit && o.set == chosen {
			break
		}
	}
	a.options = a.options[:int(it.first)+kept]
}

func less(a, b *option) bool {
	if a.rate != b.rate {
		return a.rate < b.rate
	}
	return a.utility < b.utility
}

// Some changes cost more than SwitchCost.
const (
	// edgeCost multiplies the cost for tiles at the edge of the view and beyond. If a view oscillates by 1.5°, a value
	// that falls to 1/e over 10° varies by a factor of 1.35, which is (1+c)/(1-c) for c = 0.15.
	edgeCost = 3
	// pausedCost multiplies the cost of a level that its publisher has paused, because its first frame arrives a round
	// trip later.
	pausedCost = 2
	// pictureCost multiplies the cost for pictures, whose changes begin with a key frame. The key frame has the bits of
	// about eight other frames, for all receivers of the level, and arrives a round trip later.
	pictureCost = 2
)

// price sets the values of a tile's options: the utility less the cost of the change from the current option.
//
// A change costs a share c of its gain or loss: slopes above the current option are multiplied by (1-c), slopes below
// by (1+c), so that values remain concave if utilities are.
func (a *Allocator) price(it *item, tile *Tile, value *utility, cost float64) {
	options := a.options[it.first : it.first+it.count]
	it.current = 0
	if a.fresh {
		for i := range options {
			options[i].value = options[i].utility
		}
		return
	}
	rate, detail := a.ladder.of(tile.Current)
	now := value.of(detail)
	for i := range options {
		o := &options[i]
		switch {
		case o.utility <= now:
			o.value = o.utility - cost*(now-o.utility)
		case o.set&a.ladder.paused&^tile.Current != 0:
			o.value = o.utility - min(pausedCost*cost, 0.9)*(o.utility-now)
		default:
			o.value = o.utility - cost*(o.utility-now)
		}
		if o.rate <= rate {
			it.current = int32(i)
		}
	}
	// If the current level has no rate, as a screen that does not change, current is the option off, which is not held.
	if tile.Held && tile.Current != 0 && !it.explicit && options[it.current].rate > 0 {
		a.hold(it)
	}
}

// hold removes the options above the current option.
func (a *Allocator) hold(it *item) {
	best := it.first + it.count - 1
	a.spared += a.options[best].rate - a.options[it.first+it.current].rate
	it.count = it.current + 1
	it.limit = it.current
	a.options = a.options[:it.first+it.count]
}
