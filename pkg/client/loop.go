package client

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// clockInterval is how long after the server's clock was asked for so many times it is asked for again: first often, so that one of the quickest round trips is known
// soon, then often enough to follow the drift of 50 µs/s that bad quartz has, and while times of frames are measured so that it adds little to what is not known.
func clockInterval(asked int, measuring bool) time.Duration {
	switch {
	case asked < 10:
		return 50 * time.Millisecond
	case measuring:
		return 500 * time.Millisecond
	}
	return 2 * time.Second
}

// run is the session's goroutine: signalling and negotiation. It ends with the session and then frees everything.
func (s *Session) run() {
	defer s.running.Done()
	defer s.free()
	defer s.confine()
	clock := time.NewTimer(0)
	defer clock.Stop()
	asked := 0
	times := time.NewTicker(timesInterval)
	defer times.Stop()
	updates := time.NewTimer(signalling.UpdateInterval)
	defer updates.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case m, open := <-s.conn.Messages():
			if open {
				s.handle(m)
				continue
			}
			if s.leaving.Load() {
				// The server has closed the websocket, as Close asked for.
				s.cancel(ErrClosed)
				return
			}
			if err := s.resume(); err != nil {
				s.cancel(err)
			}
		case <-s.peer.Notify():
			for _, e := range s.peer.Events() {
				s.peerEvent(e)
			}
		case <-s.updates.Wake():
			s.updates.Send(s.conn, updates)
		case <-updates.C:
			s.updates.Send(s.conn, updates)
		case <-clock.C:
			if local, asks := s.media.clockQuestion(time.Now()); asks {
				s.conn.Write(&signal.Time{T0: local.UnixMicro()})
			}
			clock.Reset(clockInterval(asked, s.media.tracing.TracesSent() || s.media.tracing.TracesReceived()))
			asked++
		case <-times.C:
			s.media.reportTimes()
		}
	}
}

// free ends what the session holds. The channels that the program reads are closed last, when nobody writes to them any more.
func (s *Session) free() {
	defer close(s.events)
	for _, end := range []func(){
		s.media.reportTimes,
		func() { s.conn.Close() },
		func() { _ = s.peer.Close() },
		func() { _ = s.endpoint.Close() },
		func() { s.media.end() },
		func() { s.media.tracing.End() },
	} {
		s.try(end)
	}
}

// handle takes one message of the server.
func (s *Session) handle(m signal.Message) {
	if s.requests.Reply(m) {
		return
	}
	switch m := m.(type) {
	case *signal.Offer:
		if err := s.negotiate(m); err != nil {
			s.cancel(fmt.Errorf("negotiation: %w", err))
		}
	case *signal.Candidate:
		candidate := transport.Candidate{Candidate: m.Candidate, MID: m.MID, LineIndex: m.LineIndex}
		if err := s.peer.AddCandidate(candidate); err != nil {
			s.log.Warn("server's candidate cannot be used", "error", err)
		}
	case *signal.Assignments:
		s.assign(m)
	case *signal.Sending:
		for _, e := range s.media.sending(m, time.Now()) {
			s.events.tell(e)
		}
	case *signal.Delivery:
		s.media.delivery(m)
	case *signal.Wanted:
		for _, w := range m.Publications {
			if publisher := s.Publisher(w.Publication); publisher != nil {
				s.events.tell(publisher.want(w))
			}
		}
	case *signal.Pose:
		s.events.tell(posed(m))
	case *signal.Bandwidth:
		s.events.tell(Bandwidth{Estimate: m.Estimate, Allocated: m.Allocated, Wanted: m.Wanted})
	case *signal.TimeReply:
		s.media.clockReply(m, time.Now())
	case *signal.Trace:
		s.media.tracing.SetReporting(m.FrameTimes)
	case *signal.FrameTimes:
		if sent, arrived, ok := s.media.tracing.Told(m, time.Now()); ok {
			s.media.travelled(sent, arrived)
		}
	case *signal.Closing:
		s.closing(m)
	case *signal.Error:
		s.log.Warn("server reports an error", "code", m.Code, "message", m.Message)
	default:
		if e := s.roster.change(m); e != nil {
			s.events.tell(e)
		}
	}
}

// closing takes the server's announcement that it ends the session.
func (s *Session) closing(m *signal.Closing) {
	s.events.tell(Closing{Code: m.Code, Message: m.Message, Grace: time.Duration(m.GraceMS) * time.Millisecond})
	ended := &signal.Error{Code: m.Code, Message: m.Message}
	switch {
	case m.GraceMS != 0, m.Code == signal.CodeSlowReader:
	case m.Code == signal.CodeConnection:
		// The session may go on with a new peer connection. Whether it does shows when it is resumed.
		s.media.disconnect()
		s.ended = ended
	default:
		s.cancel(ended)
	}
}

// negotiate applies an offer: its lines are attached between the remote and the local description.
func (s *Session) negotiate(offer *signal.Offer) error {
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
			if publisher == nil || m.Quality == nil || !publisher.has(m.Tile, *m.Quality) {
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
	s.media.agree(s.peer.TransportSequenceID(), s.peer.ReportsByStream())
	s.conn.Write(&signal.Answer{Offer: offer.Offer, SDP: answer})
	return nil
}

// assign takes what slots carry from now on, and says so to the server.
func (s *Session) assign(m *signal.Assignments) {
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

// peerEvent takes a local candidate or a new state of the peer connection.
func (s *Session) peerEvent(e transport.Event) {
	if c := e.Candidate; c != nil {
		s.conn.Write(&signal.Candidate{Candidate: c.Candidate, MID: c.MID, LineIndex: c.LineIndex})
		return
	}
	switch e.State {
	case transport.StateConnected:
		s.media.connect()
		s.events.tell(Connected{})
	case transport.StateFailed, transport.StateClosed:
		s.media.disconnect()
	}
}
