package subscriber

import (
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Some clients identify the content of a line by its name in the session description, which packets also carry. A line
// to such a client carries one tile or the audio of one publisher. As long as more lines are allowed, a line keeps its
// name. At the limit, an idle line is renamed with the next offer. Otherwise the client could not receive new
// publishers.

// Name identifies the content of a named line.
type Name struct {
	Kind volumetric.Kind
	// Publisher is the publisher's number. Tile is 0 for audio.
	Publisher uint32
	Tile      int
}

// noPublisher is a number that no publisher has.
const noPublisher = math.MaxUint32

// NamedOutput sends the packets of a named line under its name.
type NamedOutput interface {
	// Rename changes the name in the following packets.
	Rename(Name)
	// Restart reports that another publication follows under the name.
	Restart()
}

// Naming is the name of a slot's line.
type Naming struct {
	// name is the present name, nil before the first assignment. offered is the name in the last offer.
	name, offered *Name
	// named sends the line's packets once the line is negotiated.
	named NamedOutput
	// renamed is set until the client has answered an offer with the name.
	renamed bool
}

// Name returns the name of the slot's line. The slot must have been assigned, or its line offered.
func (s *Slot) Name() Name { return *s.name }

// SetNamedOutput sets the output of a named line.
func (s *Slot) SetNamedOutput(o NamedOutput) { s.named = o }

// NewNamedSlots returns an empty table of named lines, with at most limit lines of each kind.
func NewNamedSlots(limit int) *Slots {
	t := NewSlots()
	t.named, t.limit = true, limit
	return t
}

func nameOf(t *Target) Name {
	return Name{Kind: t.Publication.Description.Kind, Publisher: t.Publication.Number, Tile: t.Tile.Tile}
}

// Renames returns the number of renames of lines.
func (t *Slots) Renames() int { return t.renames }

// waitingFor returns the index of the waiting target for an idle slot, -1 if there is none.
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

// rename sets the name of a line. If the line was offered with another name, the client needs an offer.
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

// Answered handles the answer to an offer. Lines that were renamed before the offer now carry the targets of their
// names.
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

// hasName reports whether a line has the name.
func (t *Slots) hasName(name Name) bool {
	return slices.ContainsFunc(t.all, func(s *Slot) bool { return s.name != nil && *s.name == name })
}

// NamedCount returns the number of lines of a kind for a client with named lines: the present lines, and one for each
// name without a line.
func (t *Slots) NamedCount(kind volumetric.Kind) int {
	n := t.Count(kind)
	for _, w := range t.waiting[kind] {
		if !t.hasName(nameOf(w)) {
			n++
		}
	}
	return n
}

// Offer records that the present names are about to be offered. A line without a target receives a name that no
// publisher has, because a later name would need another offer. This is rare: the publication has ended during the
// creation of the line.
func (t *Slots) Offer() {
	for _, s := range t.all {
		if s.name == nil {
			s.name = &Name{Kind: s.Kind, Publisher: noPublisher}
		}
		s.offered = s.name
	}
}
