package subscriber

import (
	"slices"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Slots has the slots of one receiver on one connection, and the targets that wait for a slot.
type Slots struct {
	all     []*Slot
	mids    map[string]*Slot
	waiting map[volumetric.Kind][]*Target
	// named is set if each line carries one target and has its name. If there are limit lines of a kind, idle lines are
	// renamed; renames counts the renames.
	named   bool
	limit   int
	renames int
}

// NewSlots returns an empty table. The slots carry any target of their kind.
func NewSlots() *Slots {
	return &Slots{mids: make(map[string]*Slot), waiting: make(map[volumetric.Kind][]*Target)}
}

// All returns the slots in the order of their lines. The caller must not change the list.
func (t *Slots) All() []*Slot { return t.all }

// Add adds new lines as idle slots.
func (t *Slots) Add(lines []Line) {
	for _, l := range lines {
		s := newSlot(l)
		t.all = append(t.all, s)
		t.mids[l.MID] = s
	}
}

// Assign assigns waiting targets to idle slots and returns the assignments for the client.
func (t *Slots) Assign() []signal.Assignment {
	var told []signal.Assignment
	for _, s := range t.all {
		if s.Target != nil {
			continue
		}
		i := t.waitingFor(s)
		if i < 0 {
			continue
		}
		next := t.waiting[s.Kind][i]
		t.waiting[s.Kind] = slices.Delete(t.waiting[s.Kind], i, i+1)
		if t.named {
			t.rename(s, nameOf(next))
		}
		told = append(told, s.assign(next))
	}
	return told
}

// Want queues the targets of a publication for slots.
func (t *Slots) Want(p *Publication) {
	kind := p.Description.Kind
	for _, target := range p.targets() {
		t.waiting[kind] = append(t.waiting[kind], &target)
	}
}

// Drop frees the slots of a publication, removes its waiting targets, and returns the assignments for the client.
func (t *Slots) Drop(p *Publication) []signal.Assignment {
	kind := p.Description.Kind
	kept := t.waiting[kind][:0]
	for _, target := range t.waiting[kind] {
		if target.Publication != p {
			kept = append(kept, target)
		}
	}
	t.waiting[kind] = kept
	var told []signal.Assignment
	for _, s := range t.all {
		if s.Target != nil && s.Target.Publication == p {
			told = append(told, s.assign(nil))
		}
	}
	return told
}

// Assignments returns the present assignment of every slot.
func (t *Slots) Assignments() []signal.Assignment {
	var all []signal.Assignment
	for _, s := range t.all {
		all = append(all, s.assignment())
	}
	return all
}

// Acknowledge records the client's acknowledgement of a generation of a slot. opened reports whether the slot became
// ready. known is false if there is no such slot or no such generation yet. An older generation changes nothing,
// because a newer assignment is already sent.
func (t *Slots) Acknowledge(g signal.SlotGeneration) (opened, known bool) {
	s := t.mids[g.MID]
	if s == nil || g.Generation > s.Generation {
		return false, false
	}
	before := s.Ready()
	s.acknowledged = max(s.acknowledged, g.Generation)
	return s.Ready() && !before, true
}

// Needed returns the number of slots of a kind with a target plus the number of waiting targets.
func (t *Slots) Needed(kind volumetric.Kind) int {
	n := len(t.waiting[kind])
	for _, s := range t.all {
		if s.Kind == kind && s.Target != nil {
			n++
		}
	}
	return n
}

// Count returns the number of slots of a kind.
func (t *Slots) Count(kind volumetric.Kind) int {
	n := 0
	for _, s := range t.all {
		if s.Kind == kind {
			n++
		}
	}
	return n
}

// ByMID returns the slot of a line, nil if there is none.
func (t *Slots) ByMID(mid string) *Slot { return t.mids[mid] }

// ByOutput returns the slot with an output, nil if there is none.
func (t *Slots) ByOutput(o Output) *Slot {
	for _, s := range t.all {
		if s.Output == o {
			return s
		}
	}
	return nil
}

// Release ends the needs of all slots.
func (t *Slots) Release() {
	for _, s := range t.all {
		s.release()
	}
}
