package main

import (
	"maps"
	"reflect"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/present"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// event takes what happened in the room.
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
		v.book.Bandwidth(e.Estimate, e.Allocated)
	}
}

// compare takes over what the others publish now. Events say that something changed, the session says what is: whoever resumes, or loses an
// event, is right again afterwards.
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

// added takes a new publication, or one that is described anew.
func (v *viewer) added(ref volumetric.PublicationRef, p volumetric.Publication) {
	v.publications[ref] = p
	framed := p.Codec.Is(volumetric.MIMEVolumetric)
	if framed {
		v.volumetric[ref] = true
	}
	if !framed && p.Kind != volumetric.KindAudio {
		v.log.Warn("publication is not shown: it is not volumetric", "publication", ref, "codec", p.Codec.MIMEType)
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
	choices, err := choice.Resolve(choice.Everything, v.config.wish, []signal.Participant{{Identity: ref.Participant, Publications: []volumetric.Publication{p}}})
	if err != nil {
		v.log.Warn("the wanted quality does not exist", "publication", ref, "error", err)
		return
	}
	v.request(choices)
}

// removed takes the end of a publication.
func (v *viewer) removed(ref volumetric.PublicationRef) {
	delete(v.publications, ref)
	if v.screen != nil {
		v.screen.Remove(ref.String())
	}
	v.book.Ended(ref, v.now())
	maps.DeleteFunc(v.asked, func(tile volumetric.TileRef, _ signal.Selection) bool { return tile.PublicationRef == ref })
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

// sending takes the server's word on what a tile, or a description of it, is sent at.
func (v *viewer) sending(e *client.Sending) {
	tile := e.Track.TileRef
	p, ok := v.publications[tile.PublicationRef]
	if !ok {
		return
	}
	part, on := v.part(e.Track), e.Quality != volumetric.QualityOff
	// Frames show when a tile changes between qualities. They do not show that a description is there no longer, or once more.
	if p.Mode == volumetric.ModeDescriptions && v.sent[part] != on && v.book.Known(tile) {
		v.book.Switched(tile)
	}
	if on {
		v.sent[part] = true
		return
	}
	now := v.now()
	delete(v.sent, part)
	v.tracker.Off(part, now)
	if v.described(tile, &p) {
		return
	}
	v.book.Off(tile, now)
	if player := v.player(tile.PublicationRef); player != nil {
		player.Off(tile.Tile, now)
	}
}

// described tells whether any description of a tile is sent, or was asked for and is about to be: where one replaces another, the old one ends before
// the new one begins.
func (v *viewer) described(tile volumetric.TileRef, p *volumetric.Publication) bool {
	if p.Mode != volumetric.ModeDescriptions {
		return false
	}
	for q := range volumetric.Quality(len(p.Qualities)) {
		part := volumetric.TrackRef{TileRef: tile, Quality: q}
		if v.sent[part] || v.tracker.Pending(part) {
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

// part is what is tracked and decoded one after the other: a tile, or a description of one.
func (v *viewer) part(track volumetric.TrackRef) volumetric.TrackRef {
	if p := v.publications[track.PublicationRef]; p.Mode != volumetric.ModeDescriptions {
		track.Quality = volumetric.QualityOff
	}
	return track
}

// captured is when a frame was captured, or where the publisher does not say when its first packet came.
func captured(f *client.Frame) time.Time {
	if f.Capture.IsZero() {
		return f.First
	}
	return f.Capture
}

// frame takes a complete frame. One that is shown to be superseded already is not decoded.
func (v *viewer) frame(f *client.Frame) {
	tile := f.Track.TileRef
	if player := v.player(tile.PublicationRef); player != nil && player.Passed(tile.Tile, f.Number, captured(f)) {
		v.book.Skipped(tile, 1)
		return
	}
	v.book.Skipped(tile, v.pool.Submit(v.part(f.Track), *f))
}

// result takes a decoded frame.
func (v *viewer) result(r *decode.Result) {
	f := &r.Frame
	tile := f.Track.TileRef
	if r.Err != nil {
		v.book.Failed(tile)
		v.undecodable(f, r.Err)
		return
	}
	v.time(r)
	decoded := v.session.ServerTime(r.Decoded)
	v.book.Decoded(tile, f.Number, f.Capture, decoded)
	latency, fulfilled, switched := v.tracker.Decoded(v.part(f.Track), f.Track.Quality, f.Number, captured(f), decoded)
	if fulfilled {
		v.book.Changed(tile, latency)
	}
	if switched {
		v.book.Switched(tile)
	}
	if stage := v.stages[tile.Participant]; stage != nil {
		stage.Decoded(tile.Publication, present.Arrival{
			Tile:    tile.Tile,
			Quality: f.Track.Quality,
			Number:  f.Number,
			Capture: captured(f),
			First:   f.First,
			Decoded: decoded,
			Cloud:   r.Cloud,
		})
	}
}

// undecodable logs the first frame of each publication that cannot be decoded.
func (v *viewer) undecodable(f *client.Frame, err error) {
	name := f.Track.PublicationRef.String()
	if v.refused[name] {
		return
	}
	v.refused[name] = true
	v.log.Warn("frame cannot be decoded; further ones are only counted", "publication", name, "error", codecs.Explain(f.Codec, err))
}

// packet takes a packet of sound.
func (v *viewer) packet(p *client.Packet) {
	ref := p.Track.PublicationRef
	if !p.Codec.Is(volumetric.MIMEOpus) {
		return
	}
	v.book.Sound(ref, p.SequenceNumber)
	if duration, err := opus.Duration(p.Payload); err == nil && !p.Capture.IsZero() {
		if stage := v.stages[ref.Participant]; stage != nil {
			stage.Heard(ref.Publication, p.Capture, duration, p.Arrival)
		}
	}
	v.record(ref, p)
}

// record writes the sound that was heard first.
func (v *viewer) record(ref volumetric.PublicationRef, p *client.Packet) {
	if v.config.sound == "" {
		return
	}
	if v.recorder == nil {
		var err error
		if v.recorder, err = opus.NewRecorder(v.config.sound, p.Codec.Channels); err != nil {
			v.log.Warn("sound not saved", "error", err)
			v.config.sound = ""
			return
		}
		v.heard = ref
		v.log.Info("saving sound", "participant", ref.Participant, "publication", ref.Publication)
	}
	if ref != v.heard {
		return
	}
	if err := v.recorder.Write(&p.Packet); err != nil {
		v.log.Warn("sound not saved any more", "error", err)
		v.config.sound = ""
	}
}
