package client

import (
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// negotiate applies an offer and sends the answer. The lines of the offer are attached between the two descriptions.
func (c *control) negotiate(l link, offer *signal.Offer) error {
	s, peer := c.session, l.media.peer.Load()
	streams, err := peer.Offered(offer.SDP)
	if err != nil {
		return err
	}
	for _, m := range offer.Media {
		switch {
		case m.Role != signal.RolePublish:
			kind := volumetric.KindVideo
			if m.Role == signal.RoleAudio {
				kind = volumetric.KindAudio
			}
			l.media.addStream(m.MID, kind, streams[m.MID])
		case m.Publication == "":
			l.media.attach(m.MID, nil, nil, 0, 0)
		default:
			publisher := s.Publisher(m.Publication)
			if publisher == nil || m.Quality == nil || !publisher.has(m.Tile, *m.Quality) {
				continue
			}
			outlet, err := peer.Sending(m.MID)
			if err != nil {
				return err
			}
			l.media.attach(m.MID, outlet, publisher, m.Tile, *m.Quality)
		}
	}
	answer, err := peer.Answer()
	if err != nil {
		return err
	}
	l.media.agree(agreement{
		extension: peer.TransportSequenceID(), uplinkByStream: peer.ReportsByStream(),
		downlinkByStream: peer.AcceptsReportsByStream(),
	})
	l.conn.Write(&signal.Answer{Offer: offer.Offer, SDP: answer})
	return nil
}

// assign applies the assignments of slots, and acknowledges them.
func (c *control) assign(l link, m *signal.Assignments) {
	s := c.session
	known := &signal.Acknowledge{}
	for _, a := range m.Assignments {
		var publication *volumetric.Publication
		if a.Track != nil {
			if p, ok := s.roster.publication(a.Track.PublicationRef); ok {
				publication = &p
			}
		}
		if l.media.assign(a, publication) {
			known.Slots = append(known.Slots, signal.SlotGeneration{MID: a.MID, Generation: a.Generation})
		}
	}
	if len(known.Slots) > 0 {
		l.conn.Write(known)
	}
}

// peerEvent processes a local candidate or a new state of the peer connection.
func (c *control) peerEvent(l link, e transport.Event) {
	if local := e.Candidate; local != nil {
		if l.conn == nil {
			// The former server has closed its websocket.
			return
		}
		l.conn.Write(&signal.Candidate{Candidate: local.Candidate, MID: local.MID, LineIndex: local.LineIndex})
		return
	}
	switch e.State {
	case transport.StateConnected:
		l.media.connect()
		if c.former == nil {
			c.session.events.add(Connected{})
		}
	case transport.StateFailed, transport.StateClosed:
		l.media.disconnect()
	}
}
