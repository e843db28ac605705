package sfu

import (
	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/signal"
)

// poseRequested keeps the pose of an object, and passes it on.
func (r *Room) poseRequested(p *participant, m *signal.Pose) *signal.Error {
	publication := p.publication(m.Publication)
	if publication == nil {
		return refuse(signal.CodeNotFound, "no publication %q", m.Publication)
	}
	if tiles := len(publication.Description.Tiles); len(m.Boxes) != 0 && len(m.Boxes) != tiles {
		return refuse(signal.CodeInvalid, "%d boxes, expected none or %d, one for each tile", len(m.Boxes), tiles)
	}
	if publication.Place.Take(m) {
		r.scheduler.Changes.Motion++
	}
	r.passPose(p, publication)
	return nil
}

// passPose tells the others where an object stands, unless they have just been told: then later.
func (r *Room) passPose(owner *participant, p *publication) {
	if due := p.Place.Due(); r.now.Before(due) {
		r.wakeBy(due)
		return
	}
	r.participants.broadcast(owner, p.Place.Next(owner.identity, r.now))
}

// tellPoses tells a newcomer where the objects of the others stand, as far as their publishers have said.
func (p *participant) tellPoses() {
	for _, publication := range p.room.participants.publishedByOthers(p) {
		if latest := publication.Place.Latest(); latest != nil {
			pose := *latest
			pose.Participant = publication.Ref.Participant
			p.send(&pose)
		}
	}
}

// uplinkReported takes note of what a publisher cannot send. What it names of publications that have ended is passed
// over.
func (r *Room) uplinkReported(p *participant, m *signal.Uplink) *signal.Error {
	for _, track := range m.GaveUp {
		publication := p.publication(track.Publication)
		if publication == nil {
			continue
		}
		if d := &publication.Description; track.Tile >= len(d.Tiles) || track.Quality > d.Highest() {
			return refuse(signal.CodeNotFound, "publication %q has no tile %d of quality %d", track.Publication,
				track.Tile, track.Quality)
		}
	}
	for _, publication := range p.publications {
		gaveUp := make([]allocate.QualitySet, len(publication.Description.Tiles))
		for _, track := range m.GaveUp {
			if track.Publication == publication.Ref.Publication {
				gaveUp[track.Tile] |= allocate.Qualities(track.Quality)
			}
		}
		if publication.Levels.GiveUp(gaveUp) {
			r.scheduler.Changes.Offered++
		}
	}
	return nil
}
