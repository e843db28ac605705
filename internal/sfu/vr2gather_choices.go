package sfu

import (
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
	var choices []signal.Choice
	ignored := q.unread
	for _, c := range q.choices {
		meant := r.meant(p, c)
		if len(meant) == 0 {
			ignored++
			p.passOver("quality message names a client that publishes nothing", zap.Uint32("client", c.Client))
		}
		for _, publication := range meant {
			taken, unknown := choose(publication, c.Qualities)
			choices = append(choices, taken...)
			if ignored += unknown; unknown > 0 {
				p.passOver("quality message names a tile or a quality that there is not", zap.Stringer("publication", publication.ref))
			}
		}
	}
	r.node.counts.ignored.Add(uint64(ignored))
	switch {
	case len(choices) == 0:
	case p.choices.setAll(choices):
		p.refresh(q.at)
	default:
		p.passOver("more quality choices than are kept", zap.Int("limit", r.node.config.ChoicesPerParticipant))
	}
}

// choose makes choices of the qualities of a publication's tiles, and counts the tiles and qualities that it does not have.
func choose(p *publication, qualities []volumetric.Quality) (choices []signal.Choice, unknown int) {
	for tile, quality := range qualities {
		switch {
		case quality == vr2gather.QualityKept:
		case tile >= len(p.description.Tiles) || quality > p.description.Highest():
			unknown++
		default:
			choices = append(choices, signal.Choice{PublicationRef: p.ref, Tile: &tile, Quality: signal.Only(quality)})
		}
	}
	return choices, unknown
}

// meant are the publications that a choice is about: the client's, or with client 0, which VR2Gather sends whoever is meant, all that have so many tiles.
func (r *Room) meant(p *participant, c vr2gather.QualityChoice) []*publication {
	var meant []*publication
	for _, other := range r.others(p) {
		for _, publication := range announced(other.publications) {
			d := &publication.description
			if d.Kind != volumetric.KindVideo || withheld(d) != "" {
				continue
			}
			if c.Client != 0 && publication.client == c.Client || c.Client == 0 && len(d.Tiles) == len(c.Qualities) {
				meant = append(meant, publication)
			}
		}
	}
	return meant
}

// HandleQualities takes the quality choices of a participant that speaks VR2Gather's dialect, and how many could not be read, of a message that was read at the
// given time. It waits while the room has too much to do.
func (s *Session) HandleQualities(choices []vr2gather.QualityChoice, unread int, at time.Time) {
	s.room.post(vr2GatherChoices{participant: s.participant, outbox: s.outbox, choices: choices, unread: unread, at: at})
}
