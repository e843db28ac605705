package sfu

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// newSlot is a line that a connection has made for a slot.
type newSlot struct {
	mid    string
	kind   volumetric.Kind
	outlet *transport.Outlet
}

// slot is one outgoing stream of one receiver. It belongs to the room's goroutine.
type slot struct {
	newSlot
	// forward is nil until the client has answered the offer that brought the line.
	forward *forward.Slot
	// generation counts assignments; acknowledged is the last one that the client knows of.
	generation   uint32
	acknowledged uint32
	target       *target
	// quality is what the slot was last told to carry, requested since when.
	quality   volumetric.Quality
	requested time.Time
	selected  bool
}

// ready says whether media may be sent: the line is negotiated and the client knows what the slot carries.
func (s *slot) ready() bool {
	return s.forward != nil && s.target != nil && s.acknowledged == s.generation
}

// assign gives the slot a new target, nil for none. Nothing is sent until the client has acknowledged.
func (s *slot) assign(t *target) signal.Assignment {
	s.generation++
	s.target, s.selected = t, false
	if s.forward != nil {
		s.forward.Select(nil, 0, time.Time{})
	}
	a := signal.Assignment{MID: s.mid, Generation: s.generation}
	if t != nil {
		tile := t.tile
		a.Track, a.Quality = &tile, t.description
	}
	return a
}

// assignment is the present one, for a client that comes back.
func (s *slot) assignment() signal.Assignment {
	a := signal.Assignment{MID: s.mid, Generation: s.generation}
	if s.target != nil {
		tile := s.target.tile
		a.Track, a.Quality = &tile, s.target.description
	}
	return a
}

// carry tells the data plane which quality to send, from the next frame boundary. It reports whether that was news.
func (s *slot) carry(q volumetric.Quality, requested time.Time) bool {
	if !s.ready() || s.selected && s.quality == q {
		return false
	}
	s.quality, s.requested, s.selected = q, requested, true
	track, group := s.target.publication.track(s.target.tile.Tile, q)
	s.forward.Select(track, group, requested)
	return true
}

// slotTable is the slots of one receiver on one connection, and the targets that wait for one.
type slotTable struct {
	slots   []*slot
	mids    map[string]*slot
	waiting map[volumetric.Kind][]*target
}

func newSlotTable() *slotTable {
	return &slotTable{mids: make(map[string]*slot), waiting: make(map[volumetric.Kind][]*target)}
}

// add takes new lines as idle slots.
func (t *slotTable) add(lines []newSlot) {
	for _, l := range lines {
		s := &slot{newSlot: l, quality: volumetric.QualityOff}
		t.slots = append(t.slots, s)
		t.mids[l.mid] = s
	}
}

// assign gives waiting targets idle slots, as far as there are any, and returns the assignments to tell.
func (t *slotTable) assign() []signal.Assignment {
	var told []signal.Assignment
	for _, s := range t.slots {
		waiting := t.waiting[s.kind]
		if s.target != nil || len(waiting) == 0 {
			continue
		}
		told = append(told, s.assign(waiting[0]))
		t.waiting[s.kind] = waiting[1:]
	}
	return told
}

// want queues the targets of a publication for slots.
func (t *slotTable) want(p *publication) {
	kind := p.description.Kind
	for _, target := range p.targets() {
		t.waiting[kind] = append(t.waiting[kind], &target)
	}
}

// drop frees what carries or waits for the publication and returns the assignments to tell.
func (t *slotTable) drop(p *publication) []signal.Assignment {
	kind := p.description.Kind
	kept := t.waiting[kind][:0]
	for _, target := range t.waiting[kind] {
		if target.publication != p {
			kept = append(kept, target)
		}
	}
	t.waiting[kind] = kept
	var told []signal.Assignment
	for _, s := range t.slots {
		if s.target != nil && s.target.publication == p {
			told = append(told, s.assign(nil))
		}
	}
	return told
}

// needed is the number of slots of a kind that targets have or wait for.
func (t *slotTable) needed(kind volumetric.Kind) int {
	n := len(t.waiting[kind])
	for _, s := range t.slots {
		if s.kind == kind && s.target != nil {
			n++
		}
	}
	return n
}

// byMID finds a slot, nil where there is none.
func (t *slotTable) byMID(mid string) *slot { return t.mids[mid] }

// byForward finds a slot by its part in the data plane.
func (t *slotTable) byForward(f *forward.Slot) *slot {
	for _, s := range t.slots {
		if s.forward == f {
			return s
		}
	}
	return nil
}

// count is the number of slots of a kind.
func (t *slotTable) count(kind volumetric.Kind) int {
	n := 0
	for _, s := range t.slots {
		if s.kind == kind {
			n++
		}
	}
	return n
}
