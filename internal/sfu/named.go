package sfu

import (
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
)

// NamedOffer is an offer to a client whose lines have names.
type NamedOffer struct {
	*signal.Offer
	// Names are by mid the names of the lines that the client is sent something on.
	Names map[string]subscriber.Name
}

// offerFor returns the message that brings an offer to the client.
func (p *participant) offerFor(offer *signal.Offer) signal.Message {
	if p.profile.Named == nil {
		return offer
	}
	o := &NamedOffer{Offer: offer, Names: make(map[string]subscriber.Name)}
	p.subscriber.Slots.Offer()
	for _, m := range offer.Media {
		if s := p.subscriber.Slots.ByMID(m.MID); s != nil {
			o.Names[m.MID] = s.Name()
		}
	}
	return o
}

// openSlots gives slots their forwarding ends as soon as their lines are negotiated.
func (p *participant) openSlots() {
	for _, s := range p.subscriber.Slots.All() {
		if s.Output != nil || s.Outlet.SSRC() == 0 {
			continue
		}
		outlet := s.Outlet
		if p.profile.Named != nil {
			named := p.profile.Named(s.Outlet, s.Name())
			s.SetNamedOutput(named)
			outlet = named
		}
		s.Output = p.connection.Receiver.AddSlot(outlet, s.Kind)
	}
}
