package subscriber

import (
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Some clients know what a line carries by its name in the session description, and by the same name in packets. A
// line to such a client carries one tile of one publisher, or the publisher's sound, and it does so for good as long
// as there may be more lines. Once there may not, an idle line takes another name with the next offer: otherwise
// newcomers would never be sent.

// Name is what a named line carries.
type Name struct {
	Kind volumetric.Kind
	// Publisher is the publisher's number. Tile is 0 for audio.
	Publisher uint32
	Tile      int
}

// nobody is the number of no publisher.
const nobody = math.MaxUint32

// NamedOutput sends the packets of a named line, under its name.
type NamedOutput interface {
	// Rename has the packets that follow go out under another name.
	Rename(Name)
	// Restart says that another publication follows under the name.
	Restart()
}

// Naming is the name of a slot's line.
type Naming struct {
	// name is nil before the first assignment, offered the name in the last offer.
	name, offered *Name
	// named sends the line's packets once it is negotiated.
	named NamedOutput
	// renamed says that the client has not answered an offer with the name yet.
	renamed bool
}

// Name returns the name of the slot's line. The slot has been assigned, or its line offered.
func (s *Slot) Name() Name { return *s.name }

// SetNamedOutput gives the slot what sends its line's packets.
func (s *Slot) SetNamedOutput(o NamedOutput) { s.named = o }

// NewNamedSlots returns an empty table of named lines, of which there may be limit of each kind.
func NewNamedSlots(limit int) *Slots {
	t := NewSlots()
	t.named, t.limit = true, limit
	return t
}

func nameOf(t *Target) Name {
	return Name{Kind: t.Publication.Description.Kind, Publisher: t.Publication.Number, Tile: t.Tile.Tile}
}

// Renames returns how often a line has been given another name.
func (t *Slots) Renames() int { return t.renames }

// waitingFor returns the index of the target that an idle slot is to carry, -1 if there is none.
func (t *Slots) waitingFor(s *Slot) int {
	waiting := t.waiting[s.Kind]
	if !t.named {
		return min(len(waiting), 1) - 1
	}
	if s.name != nil {
		own := slices.IndexFunc(waiting, func(w *Target) bool { return *s.name == nameOf(w) })
		if own >= 0 || t.Count(s.Kind) < t.limit {
			return own
		}
	}
	return slices.IndexFunc(waiting, func(w *Target) bool { return !t.hasName(nameOf(w)) })
}

// rename gives a line the name of what it is to carry. A client whose line has another name has to be told by an offer.
func (t *Slots) rename(s *Slot, name Name) {
	if s.name != nil && *s.name == name {
		return
	}
	s.renamed = s.offered != nil
	if s.renamed {
		t.renames++
	}
	s.name = &name
}

// Answered notes the answer to an offer: lines that were renamed before it carry what their names say.
func (t *Slots) Answered() {
	for _, s := range t.all {
		if !s.renamed || *s.offered != *s.name {
			continue
		}
		s.renamed = false
		s.acknowledged = s.Generation
		if s.named != nil {
			s.named.Rename(*s.name)
		}
	}
}

// hasName reports whether a line has that name.
func (t *Slots) hasName(name Name) bool {
	return slices.ContainsFunc(t.all, func(s *Slot) bool { return s.name != nil && *s.name == name })
}

// NamedCount returns how many lines of a kind a client with named lines is to have: the present ones, and one for each
// name that has no line.
func (t *Slots) NamedCount(kind volumetric.Kind) int {
	n := t.Count(kind)
	for _, w := range t.waiting[kind] {
		if !t.hasName(nameOf(w)) {
			n++
		}
	}
	return n
}

// Offer notes that the names are about to be offered. A line without a target gets a name that no publisher has: it
// could not be named later without another offer. Publications that end while their lines are being made are rare.
func (t *Slots) Offer() {
	for _, s := range t.all {
		if s.name == nil {
			s.name = &Name{Kind: s.Kind, Publisher: nobody}
		}
		s.offered = s.name
	}
}
