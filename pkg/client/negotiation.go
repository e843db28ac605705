package client

import (
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// negotiate applies an offer and sends the answer. The lines of the offer are attached between the two descriptions.
func (c *control) negotiate(offer *signal.Offer) error {
	s := c.session
	streams, err := s.peer.Offered(offer.SDP)
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
			s.media.addStream(m.MID, kind, streams[m.MID])
		case m.Publication == "":
			s.media.attach(m.MID, nil, nil, 0, 0)
		default:
			publisher := s.Publisher(m.Publication)
			if publisher == nil || m.Quality == nil || !publisher.sent.Has(m.Tile, *m.Quality) {
				continue
			}
			outlet, err := s.peer.Sending(m.MID)
			if err != nil {
				return err
			}
			s.media.attach(m.MID, outlet, publisher, m.Tile, *m.Quality)
		}
	}
	answer, err := s.peer.Answer()
	if err != nil {
		return err
	}
	s.media.agree(agreement{
		extension: s.peer.TransportSequenceID(), uplinkByStream: s.peer.ReportsByStream(),
		downlinkByStream: s.peer.AcceptsReportsByStream(),
	})
	s.conn.Write(&signal.Answer{Offer: offer.Offer, SDP: answer})
	return nil
}

// assign applies the assignments of slots, and acknowledges them.
func (c *control) assign(m *signal.Assignments) {
	s := c.session
	known := &signal.Acknowledge{}
	for _, a := range m.Assignments {
		var publication *volumetric.Publication
		if a.Track != nil {
			if p, ok := s.roster.publication(a.Track.PublicationRef); ok {
				publication = &p
			}
		}
		if s.media.assign(a, publication) {
			known.Slots = append(known.Slots, signal.SlotGeneration{MID: a.MID, Generation: a.Generation})
		}
	}
	if len(known.Slots) > 0 {
		s.conn.Write(known)
	}
}

// peerEvent processes a local candidate or a new state of the peer connection.
func (c *control) peerEvent(e transport.Event) {
	s := c.session
	if local := e.Candidate; local != nil {
		s.conn.Write(&signal.Candidate{Candidate: local.Candidate, MID: local.MID, LineIndex: local.LineIndex})
		return
	}
	switch e.State {
	case transport.StateConnected:
		s.media.connect()
		s.events.add(Connected{})
	case transport.StateFailed, transport.StateClosed:
		s.media.disconnect()
	}
}
