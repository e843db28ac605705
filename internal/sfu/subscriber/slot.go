package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/fault"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Line is a line of a connection that a slot is sent on.
type Line struct {
	MID    string
	Kind   volumetric.Kind
	Outlet egress.Outlet
}

// Output is the forwarding end of a slot.
type Output interface {
	// Select says which track the slot forwards from the next frame boundary on, none if the track is nil.
	Select(track *track.Track, group uint64, requested time.Time)
}

// Slot is one outgoing stream of one receiver.
type Slot struct {
	Line
	// Output is nil until the client has answered the offer that brought the line.
	Output Output
	// Generation counts assignments; acknowledged is the last one that the client knows of.
	Generation   uint32
	acknowledged uint32
	// Target is what the slot is assigned to, nil if it is idle.
	Target *Target
	// Quality is the quality that the slot was last told to carry, if selected is set, and Reason why. asked says that
	// the receiver asked for it.
	Quality  volumetric.Quality
	Reason   signal.Reason
	selected bool
	asked    bool
	// expected is the quality that the slot will carry once it is ready, as far as that is known before.
	expected volumetric.Quality
	// Showing is the quality that last began on the slot. It goes on until the quality that the slot was told to carry
	// begins.
	Showing volumetric.Quality
	// told is the reason that the client knows for the quality that is showing.
	told signal.Reason
	// offFrames are the frames that the slot did not carry when it was last off, nil for none. While offNews is set the
	// client has not been told of them.
	offFrames *signal.FrameRange
	offNews   bool
	// needed is what the slot needs at present, of the publication source.
	source *Publication
	needed demand.Need

	// Naming is the name of the line, if lines have names.
	Naming
}

func newSlot(line Line) *Slot {
	return &Slot{
		Line: line, Quality: volumetric.QualityOff, expected: volumetric.QualityOff, Showing: volumetric.QualityOff,
		needed: demand.Nothing,
	}
}

// Ready reports whether media may be sent: the line is negotiated and the client knows what the slot carries.
func (s *Slot) Ready() bool {
	return s.Output != nil && s.Target != nil && s.acknowledged == s.Generation
}

// assign gives the slot a new target, nil for none. Nothing is sent until the client has acknowledged.
func (s *Slot) assign(t *Target) signal.Assignment {
	s.Generation++
	s.Target, s.selected, s.Reason, s.told = t, false, "", ""
	s.offFrames, s.offNews = nil, false
	s.expected, s.Showing = volumetric.QualityOff, volumetric.QualityOff
	if s.Output != nil {
		s.Output.Select(nil, 0, time.Time{})
	}
	s.updateNeed()
	if s.named != nil {
		s.named.Restart()
	}
	if s.name != nil && !s.renamed {
		// The line carries nothing else, so the client knows.
		s.acknowledged = s.Generation
	}
	return s.assignment()
}

// assignment returns the present assignment, for a client that comes back.
func (s *Slot) assignment() signal.Assignment {
	a := signal.Assignment{MID: s.MID, Generation: s.Generation}
	if s.Target != nil {
		tile := s.Target.Tile
		a.Track, a.Quality = &tile, s.Target.Description
	}
	return a
}

// carry tells the forwarding end which quality to send from the next frame boundary on, and reports whether that is a
// change. asked says that the receiver asked for it, at the time requested.
func (s *Slot) carry(q volumetric.Quality, reason signal.Reason, requested time.Time, asked bool) bool {
	if !s.Ready() {
		return false
	}
	if s.selected && s.Quality == q {
		if s.Reason != reason {
			s.Reason = reason
			s.updateNeed()
		}
		return false
	}
	if fault.Injected && fault.KeepsQuality() && s.selected && s.Quality != volumetric.QualityOff {
		return false
	}
	s.Quality, s.Reason, s.selected, s.asked = q, reason, true, asked
	if q == volumetric.QualityOff {
		s.Showing = q
	}
	publication, tile := s.Target.Publication, s.Target.Tile.Tile
	track, group := publication.Track(tile, q)
	if track != nil && publication.Demand.Paused(tile, q) {
		// The publisher is told once the room's request is done, while the data plane looks for the track's frames at
		// once.
		track.Expect()
	}
	s.Output.Select(track, group, requested)
	s.updateNeed()
	return true
}

// begun notes that a quality has begun on the slot. It reports false if the slot has been switched off meanwhile.
func (s *Slot) begun(q volumetric.Quality) bool {
	if !s.selected || s.Quality == volumetric.QualityOff {
		return false
	}
	s.Showing, s.told = q, s.Reason
	s.updateNeed()
	return true
}

// wasOff notes frames that the slot did not carry because it was off. Frames that the client has not been told of yet
// form one range with them.
func (s *Slot) wasOff(frames egress.FrameRange) {
	if frames.Count == 0 {
		return
	}
	first := frames.First
	if s.offNews {
		first = s.offFrames.First
	}
	s.offFrames, s.offNews = &signal.FrameRange{First: first, Count: frames.First + frames.Count - first}, true
}

// expect says which quality the slot will carry once the client is connected and knows of it, so that the publisher has
// begun by then.
func (s *Slot) expect(q volumetric.Quality) {
	s.expected = q
	s.updateNeed()
}

// need returns what the slot needs of its publication: the quality that it was told to carry, and until that has begun
// the quality that is showing.
func (s *Slot) need() (*Publication, demand.Need) {
	n := demand.Nothing
	if s.Target == nil {
		return nil, n
	}
	p, tile := s.Target.Publication, s.Target.Tile.Tile
	switch {
	case !s.selected && s.expected != volumetric.QualityOff:
		n.Tracks[0] = p.index(tile, s.expected)
	case !s.selected:
	case s.Quality != volumetric.QualityOff:
		n.Tracks[0] = p.index(tile, s.Quality)
		if s.Showing != volumetric.QualityOff && s.Showing != s.Quality {
			n.Tracks[1] = p.index(tile, s.Showing)
		}
	case s.Reason != signal.ReasonChoice:
		n.Near = tile
	}
	return p, n
}

// updateNeed states to the publications what the slot needs now.
func (s *Slot) updateNeed() {
	source, need := s.need()
	if source == s.source && need == s.needed {
		return
	}
	if s.source != nil {
		s.source.Demand.Remove(s.needed)
	}
	s.source, s.needed = source, need
	if source != nil {
		source.Demand.Add(need)
	}
}

// release ends the need of the slot.
func (s *Slot) release() {
	s.Target, s.selected = nil, false
	s.updateNeed()
}

// carries reports whether the slot was told to carry a quality that is not off.
func (s *Slot) carries() bool { return s.selected && s.Quality != volumetric.QualityOff }

// generation names the present assignment in messages.
func (s *Slot) generation() signal.SlotGeneration {
	return signal.SlotGeneration{MID: s.MID, Generation: s.Generation}
}

// unexplained reports whether the slot goes on as it was for another reason than the client knows.
func (s *Slot) unexplained() bool {
	return s.Ready() && s.selected && s.Showing == s.Quality && s.told != s.Reason
}

// explain returns what the slot carries, and why.
func (s *Slot) explain() signal.SlotQuality {
	s.told = s.Reason
	return signal.SlotQuality{SlotGeneration: s.generation(), Quality: s.Quality, Reason: s.Reason}
}
