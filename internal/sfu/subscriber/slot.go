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

// Line is the line of a connection on which a slot is sent.
type Line struct {
	MID    string
	Kind   volumetric.Kind
	Outlet egress.Outlet
}

// Output is the forwarding end of a slot.
type Output interface {
	// Select sets the track that the slot forwards from the next frame boundary on, nil for none.
	Select(track *track.Track, group uint64, requested time.Time)
	// SetSeen sets whether the receiver sees what the slot forwards.
	SetSeen(bool)
}

// Slot is one outgoing stream of one receiver. Other SFUs call it a down track.
type Slot struct {
	Line
	// Output is nil until the client has answered the offer of the line.
	Output Output
	// Generation counts assignments. acknowledged is the last generation that the client has acknowledged.
	Generation   uint32
	acknowledged uint32
	// Target is the assigned target, nil if the slot is idle.
	Target *Target
	// Quality is the last selected quality if selected is set, and Reason its reason. asked is set if the receiver
	// requested the quality.
	Quality  volumetric.Quality
	Reason   signal.Reason
	selected bool
	asked    bool
	// changed is the time of the last change from one quality to another, zero if there was none since the slot was
	// assigned or off.
	changed time.Time
	// expected is the quality that the slot is expected to carry when the slot becomes ready.
	expected volumetric.Quality
	// Showing is the quality of the last switch on the slot. It is forwarded until the selected quality begins.
	Showing volumetric.Quality
	// told is the reason for the showing quality that was sent to the client.
	told signal.Reason
	// offFrames are the frames that the slot did not carry while it was last off, nil for none. offNews is set until
	// the client has been notified of them.
	offFrames *signal.FrameRange
	offNews   bool
	// needed is the slot's present need for tracks of source.
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

// Ready reports whether media may be sent: the line is negotiated and the client has acknowledged the assignment.
func (s *Slot) Ready() bool {
	return s.Output != nil && s.Target != nil && s.acknowledged == s.Generation
}

// assign sets a new target, nil for none. Nothing is sent until the client has acknowledged the assignment.
func (s *Slot) assign(t *Target) signal.Assignment {
	s.Generation++
	s.Target, s.selected, s.Reason, s.told = t, false, "", ""
	s.changed = time.Time{}
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
		// The line carries nothing else, so no acknowledgement is needed.
		s.acknowledged = s.Generation
	}
	return s.assignment()
}

// assignment returns the present assignment.
func (s *Slot) assignment() signal.Assignment {
	a := signal.Assignment{MID: s.MID, Generation: s.Generation}
	if s.Target != nil {
		tile := s.Target.Tile
		a.Track, a.Quality = &tile, s.Target.Description
	}
	return a
}

// carry selects the quality that the output sends from the next frame boundary on and reports whether the quality has
// changed. asked is set if the receiver requested the quality; requested is the time of the request.
func (s *Slot) carry(q volumetric.Quality, reason signal.Reason, requested time.Time, asked bool) bool {
	if !s.Ready() {
		return false
	}
	s.Output.SetSeen(reason != signal.ReasonUnseen)
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
	s.changed = time.Time{}
	if s.selected && s.Quality != volumetric.QualityOff {
		s.changed = requested
	}
	s.Quality, s.Reason, s.selected, s.asked = q, reason, true, asked
	if q == volumetric.QualityOff {
		s.Showing = q
	}
	publication, tile := s.Target.Publication, s.Target.Tile.Tile
	track, group := publication.Track(tile, q)
	if track != nil && publication.Demand.Paused(tile, q) {
		// The publisher is asked at the end of the room's request, and the data plane expects the track's frames from
		// now.
		track.Expect()
	}
	s.Output.Select(track, group, requested)
	s.updateNeed()
	return true
}

// raiseInterval is the minimum time between a change of the quality of a picture and the next raise. Each change begins
// with a key frame, which has the bits of about eight other frames. At 30 frames per second, one key frame in 2 s adds
// an eighth to the rate of a picture, for all receivers of the quality.
const raiseInterval = 2 * time.Second

// held reports whether the quality of a picture has changed too recently to be raised.
func (s *Slot) held(now time.Time) bool {
	return !s.changed.IsZero() && now.Sub(s.changed) < raiseInterval
}

// begun records that the output has switched to a quality. begun reports false if the slot has been switched off since.
func (s *Slot) begun(q volumetric.Quality) bool {
	if !s.selected || s.Quality == volumetric.QualityOff {
		return false
	}
	s.Showing, s.told = q, s.Reason
	s.updateNeed()
	return true
}

// wasOff records frames that the slot did not carry because it was off. The range also includes earlier frames of which
// the client has not been notified.
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

// expect sets the quality that the slot will carry when it becomes ready, so that the publisher starts early.
func (s *Slot) expect(q volumetric.Quality) {
	s.expected = q
	s.updateNeed()
}

// need returns the tracks that the slot needs of its publication: the selected quality and, until that quality has
// begun, the showing quality.
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

// updateNeed states the present need of the slot to the publications.
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

// carries reports whether a quality other than off is selected.
func (s *Slot) carries() bool { return s.selected && s.Quality != volumetric.QualityOff }

// generation identifies the present assignment in messages.
func (s *Slot) generation() signal.SlotGeneration {
	return signal.SlotGeneration{MID: s.MID, Generation: s.Generation}
}

// unexplained reports whether the slot's quality is unchanged and its reason differs from the reason that the client
// knows.
func (s *Slot) unexplained() bool {
	return s.Ready() && s.selected && s.Showing == s.Quality && s.told != s.Reason
}

// explain returns the slot's quality and reason for a message to the client.
func (s *Slot) explain() signal.SlotQuality {
	s.told = s.Reason
	return signal.SlotQuality{SlotGeneration: s.generation(), Quality: s.Quality, Reason: s.Reason}
}
