package sfu

import (
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Choosable is a publication that a client is sent and whose qualities it may choose.
type Choosable struct {
	volumetric.PublicationRef
	// Number is the publisher's number.
	Number uint32
	// Tiles is the number of tiles, Highest the highest quality.
	Tiles   int
	Highest volumetric.Quality
}

// Chooser turns a message of another protocol into quality choices. The room's goroutine calls it.
type Chooser interface {
	// Choose returns the choices among the publications, and warnings for the log, each of which is logged once.
	Choose([]Choosable) (choices []signal.Choice, warnings []string)
}

// chooseRequest brings a chooser of a client.
type chooseRequest struct {
	participant *participant
	outbox      Outbox
	chooser     Chooser
	at          time.Time
}

// apply implements request.
func (q chooseRequest) apply(r *Room) {
	p := q.participant
	if p.gone || p.outbox != q.outbox {
		return
	}
	choices, warnings := q.chooser.Choose(r.participants.choosable(p))
	for _, warning := range warnings {
		p.warnOnce(warning)
	}
	changed, kept := p.subscriber.Choices.SetAll(choices)
	switch {
	case !kept:
		p.warnOnce("more quality choices than are kept", zap.Int("limit", r.node.config.ChoicesPerParticipant))
	case changed:
		p.refresh(q.at)
	}
}

// choosable returns the publications of video that a participant is sent, as far as its protocol can carry them.
func (m members) choosable(p *participant) (publications []Choosable) {
	for _, other := range m.others(p) {
		for _, publication := range announced(other.publications) {
			d := &publication.Description
			if d.Kind != volumetric.KindVideo || !p.profile.reads(publication) ||
				p.profile.second(other.publications, publication) {
				continue
			}
			publications = append(publications, Choosable{
				PublicationRef: publication.Ref, Number: publication.Number, Tiles: len(d.Tiles), Highest: d.Highest(),
			})
		}
	}
	return publications
}

// warnOnce logs a warning, once for each text.
func (p *participant) warnOnce(text string, fields ...zap.Field) {
	if p.warned[text] {
		return
	}
	if p.warned == nil {
		p.warned = make(map[string]bool)
	}
	p.warned[text] = true
	p.log.Warn(text, append(fields, zap.String("repeated", "not logged again"))...)
}
