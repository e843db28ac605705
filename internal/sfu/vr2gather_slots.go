package sfu

import (
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Towards VR2Gather peers a line carries one tile of one client, or its sound, for good: its name in the description says so, and packets name it, too.

// waitingFor finds the target that an idle slot is to carry, -1 where there is none.
func (t *slotTable) waitingFor(s *slot) int {
	waiting := t.waiting[s.kind]
	if !t.named {
		return min(len(waiting), 1) - 1
	}
	return slices.IndexFunc(waiting, func(w *target) bool {
		name := nameOf(w)
		if s.name != nil {
			return *s.name == name
		}
		return !t.hasName(name)
	})
}

// hasName tells whether a line has that name.
func (t *slotTable) hasName(name vr2gather.Track) bool {
	return slices.ContainsFunc(t.slots, func(s *slot) bool { return s.name != nil && *s.name == name })
}

// namedCount is how many lines of a kind a VR2Gather peer shall have: those that there are, and one for each name that has none.
func (t *slotTable) namedCount(kind volumetric.Kind) int {
	n := t.count(kind)
	for _, w := range t.waiting[kind] {
		if !t.hasName(nameOf(w)) {
			n++
		}
	}
	return n
}

// retire gives lines that are about to be offered, for which there is nothing any more, a name that nothing has: they could not be renamed later without another
// offer. Publications that end while their lines are being made are rare.
func (t *slotTable) retire() {
	for _, s := range t.slots {
		if s.name == nil {
			s.name = &vr2gather.Track{Kind: s.kind, Client: math.MaxUint32, Quality: nameQuality(s.kind)}
		}
	}
}
