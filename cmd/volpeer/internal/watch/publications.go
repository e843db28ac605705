package watch

import (
	"maps"
	"reflect"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/present"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// event handles a session event.
func (v *viewer) event(e client.Event) {
	peer.LogEvent(v.log, e)
	switch e := e.(type) {
	case client.ParticipantJoined, client.ParticipantLeft, client.Published, client.Unpublished, client.Resumed:
		v.compare()
	case client.PoseChanged:
		if v.screen != nil {
			v.screen.Move(e.Publication.String(), placeOf(&e.Pose))
		}
	case client.Sending:
		v.sending(&e)
	case client.Bandwidth:
		v.book.Bandwidth(e)
	}
}

// compare updates the list of publications from the session. Events only trigger the comparison, so that a resumed
// session or a lost event leaves no wrong state.
func (v *viewer) compare() {
	published := make(map[volumetric.PublicationRef]volumetric.Publication)
	for _, participant := range v.session.Participants() {
		for _, p := range participant.Publications {
			published[volumetric.PublicationRef{Participant: participant.Identity, Publication: p.Name}] = p
		}
	}
	for ref := range v.publications {
		if _, ok := published[ref]; !ok {
			v.removed(ref)
		}
	}
	for ref, p := range published {
		if known, ok := v.publications[ref]; !ok || !reflect.DeepEqual(known, p) {
			v.added(ref, p)
		}
	}
}

// added adds a new or changed publication.
func (v *viewer) added(ref volumetric.PublicationRef, p volumetric.Publication) {
	v.publications[ref] = p
	framed := p.Codec.Is(volumetric.MIMEVolumetric)
	if framed {
		v.volumetric[ref] = true
	}
	if isPicture(&p) {
		return
	}
	if !framed && p.Kind != volumetric.KindAudio {
		v.log.Warn("publication is not shown because its codec is not "+
			"volumetric", "publication", ref, "codec", p.Codec.MIMEType)
		return
	}
	stage := v.stages[ref.Participant]
	if stage == nil {
		stage = present.NewStage(v.config.deadline)
		v.stages[ref.Participant] = stage
	}
	stage.Add(&p)
	if !framed || v.config.wish.IsAuto() {
		return
	}
	choices, err := choice.Resolve(choice.Everything, v.config.wish,
		[]signal.Participant{{Identity: ref.Participant, Publications: []volumetric.Publication{p}}})
	if err != nil {
		v.log.Warn("the publication does not have the requested quality", "publication", ref, "error", err)
		return
	}
	v.requests.ask(choices)
}

// removed removes a publication that has ended.
func (v *viewer) removed(ref volumetric.PublicationRef) {
	delete(v.publications, ref)
	delete(v.pictureQuality, ref)
	if v.screen != nil {
		v.screen.Remove(ref.String())
	}
	v.book.Ended(ref, v.now())
	v.requests.forget(ref)
	maps.DeleteFunc(v.sent, func(part volumetric.TrackRef, _ bool) bool { return part.PublicationRef == ref })
	stage := v.stages[ref.Participant]
	if stage == nil {
		return
	}
	stage.Remove(ref.Publication)
	if stage.Empty() {
		delete(v.stages, ref.Participant)
	}
}

// sending handles the server's message about the quality of a tile or description that is sent.
func (v *viewer) sending(e *client.Sending) {
	tile := e.Track.TileRef
	p, ok := v.publications[tile.PublicationRef]
	if !ok {
		return
	}
	if isPicture(&p) {
		v.pictureSending(tile.PublicationRef, e.Quality)
		return
	}
	part, on := v.part(e.Track), e.Quality != volumetric.QualityOff
	// Frames show when a tile changes between qualities. Frames do not show that a description has been removed or
	// added.
	if p.Mode == volumetric.ModeDescriptions && v.sent[part] != on && v.book.Known(tile) {
		v.book.Switched(tile)
	}
	if on {
		v.sent[part] = true
		return
	}
	now := v.now()
	delete(v.sent, part)
	v.requests.tracker.Off(part, now)
	if v.described(tile, &p) {
		return
	}
	v.book.Off(tile, now)
	if player := v.player(tile.PublicationRef); player != nil {
		player.Off(tile.Tile, now)
	}
}

// described reports whether any description of a tile is sent, or was requested and is about to be sent. When one
// description replaces another, the old one ends before the new one begins.
func (v *viewer) described(tile volumetric.TileRef, p *volumetric.Publication) bool {
	if p.Mode != volumetric.ModeDescriptions {
		return false
	}
	for q := range volumetric.Quality(len(p.Qualities)) {
		part := volumetric.TrackRef{TileRef: tile, Quality: q}
		if v.sent[part] || v.requests.tracker.Pending(part) {
			return true
		}
	}
	return false
}

func (v *viewer) player(ref volumetric.PublicationRef) *present.Player {
	stage := v.stages[ref.Participant]
	if stage == nil {
		return nil
	}
	return stage.Player(ref.Publication)
}

// part returns the unit that is tracked and decoded in order: a tile, or a description of a tile.
func (v *viewer) part(track volumetric.TrackRef) volumetric.TrackRef {
	if p := v.publications[track.PublicationRef]; p.Mode != volumetric.ModeDescriptions {
		track.Quality = volumetric.QualityOff
	}
	return track
}
