package sfu

import (
	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/signal"
)

// pose stores the pose of an object and forwards the pose.
func (q messageRequest) pose(r *Room, m *signal.Pose) *signal.Error {
	p := q.participant
	publication := p.Publication(m.Publication)
	if publication == nil {
		return refuse(signal.CodeNotFound, "there is no publication %q", m.Publication)
	}
	if !publication.Fits(m) {
		return refuse(signal.CodeInvalid, "%d boxes, expected none or %d, one for each tile", len(m.Boxes),
			len(publication.Description.Tiles))
	}
	if publication.Place.Take(m) {
		r.scheduler.Changes.Motion++
	}
	r.forwardPose(publication)
	return nil
}

// forwardPose sends the pose of an object to the others. If the last pose was sent too recently, the pose is sent
// later.
func (r *Room) forwardPose(p *presence.Publication) {
	if due := p.Place.Due(); r.now.Before(due) {
		r.wakeBy(due)
		return
	}
	next := p.Place.Next(p.Ref.Participant, r.now)
	r.participants.broadcast(r.participants[p.Ref.Participant], next)
	r.recorder.current.Posed(r.now, p, next())
	r.span.posed(p, "")
}

// sendPoses sends a new participant the latest poses of the others' objects.
func (p *participant) sendPoses() {
	for _, publication := range p.room.PublishedByOthers(&p.Presence) {
		if latest := publication.Place.Latest(); latest != nil {
			pose := *latest
			pose.Participant = publication.Ref.Participant
			p.send(&pose)
		}
	}
}

// reportUplink stores the qualities that a publisher's uplink cannot carry. Tracks of ended publications are ignored.
func (q messageRequest) reportUplink(r *Room, m *signal.Uplink) *signal.Error {
	p := q.participant
	for _, track := range m.GaveUp {
		publication := p.Publication(track.Publication)
		if publication == nil {
			continue
		}
		if d := &publication.Description; track.Tile >= len(d.Tiles) || track.Quality > d.Highest() {
			return refuse(signal.CodeNotFound, "publication %q has no tile %d of quality %d", track.Publication,
				track.Tile, track.Quality)
		}
	}
	for _, publication := range p.Publications {
		gaveUp := make([]allocate.QualitySet, len(publication.Description.Tiles))
		for _, track := range m.GaveUp {
			if track.Publication == publication.Ref.Publication {
				gaveUp[track.Tile] |= allocate.Qualities(track.Quality)
			}
		}
		if publication.Levels.GiveUp(gaveUp) {
			r.scheduler.Changes.Offered++
			r.recorder.current.Select(r.now, publication)
			r.span.gaveUp(publication)
		}
	}
	return nil
}
