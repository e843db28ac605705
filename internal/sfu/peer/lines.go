package peer

import (
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Track identifies one published track that needs a line. The id distinguishes successive publications with the same
// name.
type Track struct {
	ID          uint64
	Publication string
	Kind        volumetric.Kind
	Tile        int
	Quality     volumetric.Quality
}

// publishLine is one line on which the client sends. Lines are never removed from a description: if the track of a line
// has ended, the next track uses the line.
type publishLine struct {
	line  *transport.Line
	kind  volumetric.Kind
	track *Track
	// offered is set when an offer has assigned the track to the line.
	offered bool
}

// slotLine is one line on which the client receives.
type slotLine struct {
	line *transport.Line
	kind volumetric.Kind
	// told is set when the owner has received the line.
	told bool
}

// Lines are the lines that a connection shall have. The numbers of slots never decrease.
type Lines struct {
	Publish    []Track
	Slots      int
	AudioSlots int
	// Renames counts changes of the names of lines. Each change needs an offer.
	Renames int
}

// lineTable has the lines of one peer connection. The connection's goroutine owns it.
type lineTable struct {
	publish []*publishLine
	slots   []*slotLine
}

// reconcilePublish assigns a line to each wanted track, first from the idle lines of its kind, and returns the tracks
// for which no line is left. changed reports whether the client needs an offer.
func (t *lineTable) reconcilePublish(wanted []Track) (lacking []Track, changed bool) {
	need := make(map[Track]bool, len(wanted))
	for _, track := range wanted {
		need[track] = true
	}
	for _, l := range t.publish {
		switch {
		case l.track == nil:
		case need[*l.track]:
			delete(need, *l.track)
			changed = changed || !l.offered
		default:
			l.track, l.offered = nil, false
		}
	}
	for _, track := range wanted {
		if !need[track] {
			continue
		}
		changed = true
		if l := t.idlePublishLine(track.Kind); l != nil {
			l.track = &track
			continue
		}
		lacking = append(lacking, track)
	}
	return lacking, changed
}

func (t *lineTable) idlePublishLine(kind volumetric.Kind) *publishLine {
	for _, l := range t.publish {
		if l.track == nil && l.kind == kind {
			return l
		}
	}
	return nil
}

// countSlots returns the number of slot lines of a kind.
func (t *lineTable) countSlots(kind volumetric.Kind) int {
	n := 0
	for _, l := range t.slots {
		if l.kind == kind {
			n++
		}
	}
	return n
}

// media describes all lines for an offer and marks publishing lines as offered.
func (t *lineTable) media() []signal.Media {
	media := make([]signal.Media, 0, len(t.publish)+len(t.slots))
	for _, l := range t.publish {
		m := signal.Media{MID: l.line.MID(), Role: signal.RolePublish}
		if l.track != nil {
			quality := l.track.Quality
			m.Publication, m.Tile, m.Quality = l.track.Publication, l.track.Tile, &quality
			l.offered = true
		}
		media = append(media, m)
	}
	for _, l := range t.slots {
		role := signal.RoleSlot
		if l.kind == volumetric.KindAudio {
			role = signal.RoleAudio
		}
		media = append(media, signal.Media{MID: l.line.MID(), Role: role})
	}
	return media
}
