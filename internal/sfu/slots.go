package sfu

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/fault"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// newSlot is a line that a connection has made for a slot.
type newSlot struct {
	mid    string
	kind   volumetric.Kind
	outlet forward.Outlet
}

// outgoing is a slot's part in the data plane.
type outgoing interface {
	// Select says what the slot carries from the next frame boundary on, nothing if the track is nil.
	Select(track *forward.Track, group uint64, requested time.Time)
}

// slot is one outgoing stream of one receiver. It belongs to the room's goroutine.
type slot struct {
	newSlot
	// name is what a line towards a VR2Gather peer carries, nil before the first assignment, and offered the one that it had in the last offer; plain is its outlet,
	// once it is negotiated. renamed says that the peer has not answered an offer with the name yet.
	name, offered *vr2gather.Track
	plain         *namedOutlet
	renamed       bool
	// forward is nil until the client has answered the offer that brought the line.
	forward outgoing
	// generation counts assignments; acknowledged is the last one that the client knows of.
	generation   uint32
	acknowledged uint32
	target       *target
	// quality is what the slot was last told to carry, once selected is set, and reason why. asked says that the receiver asked for it.
	quality  volumetric.Quality
	reason   signal.Reason
	selected bool
	asked    bool
	// expected is what the slot will carry once it is ready, as far as can be said before.
	expected volumetric.Quality
	// showing is the quality that has last begun on the slot, and goes on until the one that it was told to carry begins.
	showing volumetric.Quality
	// told is the reason that the client knows for what is showing.
	told signal.Reason
	// offFrames are those that the slot did not carry when it was off last, nil for none; the client is to hear of them while they are news.
	offFrames *signal.FrameRange
	offNews   bool
	// held is what the slot needs of its publication at present.
	held hold
}

// hold is what a slot needs of a publication: up to two tracks, or only that its lowest quality is near. Indices are -1 where there is nothing.
type hold struct {
	publication *publication
	tracks      [2]int
	near        int
}

var nothing = hold{tracks: [2]int{-1, -1}, near: -1}

// ready says whether media may be sent: the line is negotiated and the client knows what the slot carries.
func (s *slot) ready() bool {
	return s.forward != nil && s.target != nil && s.acknowledged == s.generation
}

// assign gives the slot a new target, nil for none. Nothing is sent until the client has acknowledged.
func (s *slot) assign(t *target) signal.Assignment {
	s.generation++
	s.target, s.selected, s.reason, s.told = t, false, "", ""
	s.offFrames, s.offNews = nil, false
	s.expected, s.showing = volumetric.QualityOff, volumetric.QualityOff
	if s.forward != nil {
		s.forward.Select(nil, 0, time.Time{})
	}
	s.hold()
	if s.plain != nil {
		s.plain.Restart()
	}
	if s.name != nil && !s.renamed {
		// The line carries nothing else, whenever it is told.
		s.acknowledged = s.generation
	}
	return s.assignment()
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

// carry tells the data plane which quality to send, from the next frame boundary. It reports whether that was news. asked says that the receiver
// asked for this, at the time requested.
func (s *slot) carry(q volumetric.Quality, reason signal.Reason, requested time.Time, asked bool) bool {
	if !s.ready() {
		return false
	}
	if s.selected && s.quality == q {
		if s.reason != reason {
			s.reason = reason
			s.hold()
		}
		return false
	}
	if fault.Injected && fault.KeepsQuality() && s.selected && s.quality != volumetric.QualityOff {
		return false
	}
	s.quality, s.reason, s.selected, s.asked = q, reason, true, asked
	if q == volumetric.QualityOff {
		s.showing = q
	}
	track, group := s.target.publication.track(s.target.tile.Tile, q)
	if track != nil && s.target.publication.paused(s.target.tile.Tile, q) {
		// Its publisher is told once the request is done, while the data plane looks for the track's frames at once.
		track.Expect()
	}
	s.forward.Select(track, group, requested)
	s.hold()
	return true
}

// begun notes that a quality has begun on the slot. It reports false where the slot has been switched off meanwhile.
func (s *slot) begun(q volumetric.Quality) bool {
	if !s.selected || s.quality == volumetric.QualityOff {
		return false
	}
	s.showing, s.told = q, s.reason
	s.hold()
	return true
}

// wasOff notes frames that the slot did not carry because it was off. Those that the client has not heard of yet are taken for one stretch with them.
func (s *slot) wasOff(frames forward.FrameRange) {
	if frames.Count == 0 {
		return
	}
	first := frames.First
	if s.offNews {
		first = s.offFrames.First
	}
	s.offFrames, s.offNews = &signal.FrameRange{First: first, Count: frames.First + frames.Count - first}, true
}

// expect says what the slot will carry once the client is connected and knows of it, so that its publisher has begun by then.
func (s *slot) expect(q volumetric.Quality) {
	s.expected = q
	s.hold()
}

// needs is what the slot needs of its publication: the quality that it was told to carry, and until that has begun the one that is showing.
func (s *slot) needs() hold {
	h := nothing
	if s.target == nil {
		return h
	}
	p, tile := s.target.publication, s.target.tile.Tile
	h.publication = p
	switch {
	case !s.selected && s.expected != volumetric.QualityOff:
		h.tracks[0] = p.index(tile, s.expected)
	case !s.selected:
	case s.quality != volumetric.QualityOff:
		h.tracks[0] = p.index(tile, s.quality)
		if s.showing != volumetric.QualityOff && s.showing != s.quality {
			h.tracks[1] = p.index(tile, s.showing)
		}
	case s.reason != signal.ReasonChoice:
		h.near = tile
	}
	return h
}

// hold brings the publications' counts of what is needed up to date.
func (s *slot) hold() {
	next := s.needs()
	if next == s.held {
		return
	}
	before := s.held
	s.held = next
	before.add(-1)
	next.add(1)
}

// add changes the counts of what is needed.
func (h hold) add(n int) {
	if h.publication == nil {
		return
	}
	for _, track := range h.tracks {
		if track >= 0 {
			h.publication.demand.taken[track] += n
		}
	}
	if h.near >= 0 {
		h.publication.demand.near[h.near] += n
	}
	h.publication.unsettle()
}

// slotTable is the slots of one receiver on one connection, and the targets that wait for one.
type slotTable struct {
	// named tables are those of VR2Gather peers, whose lines have names. Where there are as many of a kind as limit says, idle ones are renamed, which renames counts.
	named   bool
	limit   int
	renames int
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
		s := &slot{newSlot: l, quality: volumetric.QualityOff, expected: volumetric.QualityOff, showing: volumetric.QualityOff, held: nothing}
		t.slots = append(t.slots, s)
		t.mids[l.mid] = s
	}
}

// assign gives waiting targets idle slots, as far as there are any, and returns the assignments to tell.
func (t *slotTable) assign() []signal.Assignment {
	var told []signal.Assignment
	for _, s := range t.slots {
		if s.target != nil {
			continue
		}
		i := t.waitingFor(s)
		if i < 0 {
			continue
		}
		next := t.waiting[s.kind][i]
		t.waiting[s.kind] = slices.Delete(t.waiting[s.kind], i, i+1)
		if t.named {
			t.name(s, nameOf(next))
		}
		told = append(told, s.assign(next))
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
		if s.forward == outgoing(f) {
			return s
		}
	}
	return nil
}

// release ends what the slots need of publications.
func (t *slotTable) release() {
	for _, s := range t.slots {
		s.target, s.selected = nil, false
		s.hold()
	}
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
