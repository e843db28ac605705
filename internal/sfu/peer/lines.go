package peer

import (
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Track names one track of the client's own that needs a line. The id tells publications apart that have the
// same name one after the other.
type Track struct {
	ID          uint64
	Publication string
	Kind        volumetric.Kind
	Tile        int
	Quality     volumetric.Quality
}

// publishLine is one line that the client sends on. Lines are never removed from a description: one whose track has
// ended waits for the next.
type publishLine struct {
	line  *transport.Line
	kind  volumetric.Kind
	track *Track
	// offered says that the client was told of the track in an offer.
	offered bool
}

// slotLine is one line that the client receives on.
type slotLine struct {
	line *transport.Line
	kind volumetric.Kind
	// told says that the owner knows of the line.
	told bool
}

// Lines are the lines that a connection is to have. The numbers of slots only grow.
type Lines struct {
	Publish    []Track
	Slots      int
	AudioSlots int
	// Renames counts the lines of which the client has to be told another name.
	Renames int
}

// lineTable is the lines of one peer connection. It is owned by the connection's goroutine.
type lineTable struct {
	publish []*publishLine
	slots   []*slotLine
}

// reconcilePublish gives every wanted track a line, using idle lines of its kind first, and returns how many lines of
// each kind lack. It reports whether the client must be told of a new assignment.
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

// countSlots is the number of slot lines of a kind.
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
