package subscriber

import (
	"slices"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Slots are the slots of one receiver on one connection, and the targets that wait for one.
type Slots struct {
	all     []*Slot
	mids    map[string]*Slot
	waiting map[volumetric.Kind][]*Target
	// named says that each line carries one target for good, and says so by its name. If there are limit lines of a
	// kind, idle ones are renamed, which renames counts.
	named   bool
	limit   int
	renames int
}

// NewSlots returns an empty table, whose slots carry any target of their kind.
func NewSlots() *Slots {
	return &Slots{mids: make(map[string]*Slot), waiting: make(map[volumetric.Kind][]*Target)}
}

// All returns the slots in the order of their lines. The caller must not change the list.
func (t *Slots) All() []*Slot { return t.all }

// Add takes new lines as idle slots.
func (t *Slots) Add(lines []Line) {
	for _, l := range lines {
		s := newSlot(l)
		t.all = append(t.all, s)
		t.mids[l.MID] = s
	}
}

// Assign gives waiting targets idle slots, as far as there are any, and returns the assignments to tell.
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

// Drop frees the slots of a publication, and its targets that wait, and returns the assignments to tell.
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

// Acknowledge notes that the client knows a generation of a slot. It reports whether the slot became ready by that. It
// is not known if there is no such slot, or no such generation of it yet. Older generations change nothing: a newer
// assignment is on its way to the client.
func (t *Slots) Acknowledge(g signal.SlotGeneration) (opened, known bool) {
	s := t.mids[g.MID]
	if s == nil || g.Generation > s.Generation {
		return false, false
	}
	before := s.Ready()
	s.acknowledged = max(s.acknowledged, g.Generation)
	return s.Ready() && !before, true
}

// Needed returns the number of slots of a kind that targets have or wait for.
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

// ByMID finds a slot by its line, nil if there is none.
func (t *Slots) ByMID(mid string) *Slot { return t.mids[mid] }

// ByOutput finds a slot by its forwarding end, nil if there is none.
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
