package allocate

import (
	"math/bits"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// QualitySet is a set of qualities of one tile: bit q is quality q, for up to volumetric.MaxQualities qualities. The
// empty set is off.
type QualitySet uint64

// Qualities returns a set. QualityOff and qualities of volumetric.MaxQualities or more are ignored.
func Qualities(qualities ...volumetric.Quality) QualitySet {
	var set QualitySet
	for _, q := range qualities {
		if q >= 0 && q < volumetric.MaxQualities {
			set |= 1 << q
		}
	}
	return set
}

// Lowest returns the set of the n lowest qualities.
func Lowest(n int) QualitySet { return 1<<n - 1 }

// Has reports whether a quality is in the set.
func (s QualitySet) Has(q volumetric.Quality) bool {
	return q >= 0 && q < volumetric.MaxQualities && s>>q&1 == 1
}

// Len returns the number of qualities in the set.
func (s QualitySet) Len() int { return bits.OnesCount64(uint64(s)) }

// Highest returns the highest quality of the set, volumetric.QualityOff for the empty set. In
// volumetric.ModeAlternatives it is the only one.
func (s QualitySet) Highest() volumetric.Quality {
	return volumetric.Quality(bits.Len64(uint64(s)) - 1)
}

// Each iterates over the qualities in ascending order, for range.
func (s QualitySet) Each(yield func(volumetric.Quality) bool) {
	for rest := uint64(s); rest != 0; rest &= rest - 1 {
		if !yield(volumetric.Quality(bits.TrailingZeros64(rest))) {
			return
		}
	}
}

// Choice is a receiver's choice for one tile. The zero value leaves the decision to the allocator.
type Choice struct {
	// Explicit distinguishes a choice from auto.
	Explicit bool
	// Qualities are the chosen qualities; the empty set is off. In volumetric.ModeAlternatives the highest counts.
	Qualities QualitySet
}

// Descriptions returns the choice of a set of descriptions, or of alternatives, of which the highest counts.
func Descriptions(set QualitySet) Choice { return Choice{Explicit: true, Qualities: set} }

// Reason is the reason of a decision.
type Reason uint8

// The reasons. The first is the zero value: only utility decided.
const (
	// ReasonAuto: the allocator's best use of the budget.
	ReasonAuto Reason = iota
	// ReasonChoice: the receiver chose these qualities and gets them.
	ReasonChoice
	// ReasonBudget: the budget does not suffice for the receiver's choice, or for any level of a visible tile.
	// ReasonBudget is also the reason of the tile that is sent although nothing fits.
	ReasonBudget
	// ReasonUnseen: the receiver cannot see the tile. The tile is off because others need the budget, or limited by
	// ViewConfig.Unseen.
	ReasonUnseen
)

// String returns the name of the reason in signalling.
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

// Decision is the allocation of one tile.
type Decision struct {
	// Qualities is empty for off, one quality in volumetric.ModeAlternatives, any number in
	// volumetric.ModeDescriptions.
	Qualities QualitySet
	Reason    Reason
}

// Quality returns the only quality of a tile in volumetric.ModeAlternatives, or volumetric.QualityOff.
func (d Decision) Quality() volumetric.Quality { return d.Qualities.Highest() }
