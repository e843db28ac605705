package sfu

import (
	"slices"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// regranted is what changes for a participant that resumes its session with a token of other grants.
type regranted struct {
	// ended are the publications that ended because publishing is not granted any more.
	ended []volumetric.PublicationRef
	// deaf says that receiving is not granted any more, and receives that it is granted again.
	deaf, receives bool
}

// regrant gives a participant the grants of the token that it came back with. Publications whose grant is gone end, and
// so do slots. The client hears of that by tell, once it has the reply to its join.
func (r *Room) regrant(p *participant, grants Grants, newConnection bool) (changed regranted) {
	p.grants = grants
	if newConnection {
		// A connection that lives has the line for data channels, or has it not.
		defer p.useDataChannels()
	}
	if !grants.Publish {
		for _, publication := range slices.Clone(p.publications) {
			changed.ended = append(changed.ended, publication.Ref)
			r.unpublish(p, publication, true)
			p.log.Info("unpublished: the token does not grant publishing any more",
				zap.String("publication", publication.Ref.Publication))
		}
	}
	receives := p.asked.receive && grants.Subscribe
	switch {
	case p.receive && !receives:
		changed.deaf = true
		for _, publication := range r.participants.publishedByOthers(p) {
			p.subscriber.Slots.Drop(publication.Publication)
		}
		p.receive = false
	case !p.receive && receives && (newConnection || !p.asked.receiveData):
		changed.receives = true
		p.receive = true
	}
	return changed
}

// tell says what has ended, and why.
func (c *regranted) tell(p *participant) {
	for _, ref := range c.ended {
		p.send(&signal.Unpublished{PublicationRef: ref})
		p.send(refuse(signal.CodeForbidden, "publication %q has ended: the token does not grant publishing any more",
			ref.Publication))
	}
	if c.deaf {
		p.send(refuse(signal.CodeForbidden, "nothing is sent any more: the token does not grant receiving"))
	}
}

// useDataChannels decides whether a new connection has data channels for what the client publishes, and for what it
// takes.
func (p *participant) useDataChannels() {
	p.byData = p.asked.publishData && p.grants.Publish
	p.takesChunks = p.asked.receiveData && p.receive
}
