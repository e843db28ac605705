package allocate

import (
	"math/bits"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// QualitySet is a set of qualities of one tile, a bit for each: bit q stands for quality q. volumetric.MaxQualities of them fit.
// The empty set is off.
type QualitySet uint64

// Qualities is the set of those qualities. What is off or beyond volumetric.MaxQualities is left out.
func Qualities(qualities ...volumetric.Quality) QualitySet {
	var set QualitySet
	for _, q := range qualities {
		if q >= 0 && q < volumetric.MaxQualities {
			set |= 1 << q
		}
	}
	return set
}

// Lowest is the set of the n lowest qualities.
func Lowest(n int) QualitySet { return 1<<n - 1 }

// Has tells whether the quality is in the set.
func (s QualitySet) Has(q volumetric.Quality) bool {
	return q >= 0 && q < volumetric.MaxQualities && s>>q&1 == 1
}

// Len is the number of qualities in the set.
func (s QualitySet) Len() int { return bits.OnesCount64(uint64(s)) }

// Highest is the best quality of the set, volumetric.QualityOff for the empty one. In volumetric.ModeAlternatives it is the only one.
func (s QualitySet) Highest() volumetric.Quality {
	return volumetric.Quality(bits.Len64(uint64(s)) - 1)
}

// Each calls yield with the qualities in ascending order until it returns false: it is an iterator, for range.
func (s QualitySet) Each(yield func(volumetric.Quality) bool) {
	for rest := uint64(s); rest != 0; rest &= rest - 1 {
		if !yield(volumetric.Quality(bits.TrailingZeros64(rest))) {
			return
		}
	}
}

// Choice is what a receiver asked for one tile. The zero value leaves it to the allocator.
type Choice struct {
	// Explicit tells a choice from auto.
	Explicit bool
	// Qualities are the chosen ones, none is off. In volumetric.ModeAlternatives the highest counts.
	Qualities QualitySet
}

// Descriptions is the choice of a set of descriptions, or of alternatives the highest of which counts.
func Descriptions(set QualitySet) Choice { return Choice{Explicit: true, Qualities: set} }

// Reason says why a tile is sent as it is.
type Reason uint8

// The reasons. The first one is the zero value: nothing stood in the way of utility.
const (
	// ReasonAuto: the allocator's best use of the budget.
	ReasonAuto Reason = iota
	// ReasonChoice: the receiver asked for it and got it.
	ReasonChoice
	// ReasonBudget: the budget did not suffice for what the receiver asked for, or for anything of a tile that it sees. So it is, too, for the one tile that is sent
	// where nothing fits.
	ReasonBudget
	// ReasonUnseen: the receiver cannot see the tile. It is off because others need the budget, or spared what it might be sent (ViewConfig.Unseen).
	ReasonUnseen
)

// String is the reason's name in signalling.
func (r Reason) String() string {
	switch r {
	case ReasonChoice:
		return "choice"
	case ReasonBudget:
		return "budget"
	case ReasonUnseen:
		return "unseen"
	default:
		return "auto"
	}
}

// Decision is what one tile is allocated.
type Decision struct {
	// Qualities is empty for off, one quality in volumetric.ModeAlternatives, any number in volumetric.ModeDescriptions.
	Qualities QualitySet
	Reason    Reason
}

// Quality is the only quality of a tile of volumetric.ModeAlternatives, or volumetric.QualityOff.
func (d Decision) Quality() volumetric.Quality { return d.Qualities.Highest() }
