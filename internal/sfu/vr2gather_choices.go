package sfu

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// vr2GatherChoices bring quality choices of a participant that speaks the dialect.
type vr2GatherChoices struct {
	participant *participant
	outbox      Outbox
	choices     []vr2gather.QualityChoice
	unread      int
	at          time.Time
}

// apply implements request.
func (q vr2GatherChoices) apply(r *Room) {
	p := q.participant
	if p.gone || p.outbox != q.outbox {
		return
	}
	if q.unread > 0 {
		p.passOver("part of a quality message cannot be read")
	}
	choices, ignored := p.resolve(r.choosable(p), q.choices)
	ignored += q.unread
	r.node.counts.ignored.Add(uint64(ignored))
	changed, kept := p.subscriber.Choices.SetAll(choices)
	switch {
	case !kept:
		p.passOver("more quality choices than are kept", zap.Int("limit", r.node.config.ChoicesPerParticipant))
	case changed:
		p.refresh(q.at)
	}
}

// choosable are the publications that the choices of a participant can be about: those that it is sent.
func (r *Room) choosable(p *participant) (publications []*publication) {
	for _, other := range r.participants.others(p) {
		for _, publication := range announced(other.publications) {
			if d := &publication.Description; d.Kind == volumetric.KindVideo && withheld(d) == "" && !r.participants.second(publication) {
				publications = append(publications, publication)
			}
		}
	}
	return publications
}

// means tells whether a choice is about a publication: about its client's, or with client 0, which VR2Gather sends whoever is meant, about all that have so many tiles.
func means(c vr2gather.QualityChoice, p *publication) bool {
	if c.Client == 0 {
		return len(p.Description.Tiles) == len(c.Qualities)
	}
	return p.Number == c.Client
}

// resolve makes of the choices of a message one for each tile that it names, of those that come later in it where tiles are named twice: a message of 2 MB may name
// half a million, and what is made of it is what there are tiles in the room. It counts the clients, tiles and qualities that there are not.
func (p *participant) resolve(publications []*publication, named []vr2gather.QualityChoice) (choices []signal.Choice, ignored int) {
	chosen := make([][]volumetric.Quality, len(publications))
	strangers := false
	for _, c := range named {
		known := false
		for i, publication := range publications {
			if !means(c, publication) {
				continue
			}
			known = true
			if chosen[i] == nil {
				chosen[i] = slices.Repeat([]volumetric.Quality{vr2gather.QualityKept}, len(publication.Description.Tiles))
			}
			ignored += overlay(chosen[i], c.Qualities, publication.Description.Highest())
		}
		if !known {
			ignored++
			strangers = true
		}
	}
	switch {
	case strangers:
		p.passOver("quality message names a client that publishes nothing")
	case ignored > 0:
		p.passOver("quality message names a tile or a quality that there is not")
	}
	for i, qualities := range chosen {
		for tile, quality := range qualities {
			if quality != vr2gather.QualityKept {
				choices = append(choices, signal.Choice{PublicationRef: publications[i].Ref, Tile: &tile, Quality: signal.Only(quality)})
			}
		}
	}
	return choices, ignored
}

// overlay puts the named qualities of a publication's tiles in the place of those before, and counts the tiles and qualities that it does not have.
func overlay(tiles, named []volumetric.Quality, highest volumetric.Quality) (unknown int) {
	for tile, quality := range named {
		switch {
		case quality == vr2gather.QualityKept:
		case tile >= len(tiles) || quality > highest:
			unknown++
		default:
			tiles[tile] = quality
		}
	}
	return unknown
}

// HandleQualities takes the quality choices of a participant that speaks VR2Gather's dialect, and how many could not be read, of a message that was read at the
// given time. It waits while the room has too much to do.
func (s *Session) HandleQualities(choices []vr2gather.QualityChoice, unread int, at time.Time) {
	s.room.post(vr2GatherChoices{participant: s.participant, outbox: s.outbox, choices: choices, unread: unread, at: at})
}
