package client

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// clockInterval returns the time until the client asks for the server's clock again. asked is the number of previous
// questions. The first ten intervals are short, so that one short round trip is known soon. Later intervals are short
// enough to follow a bad quartz, which drifts by 50 µs/s. While frame times are measured, intervals are shorter, so
// that the drift adds little to the uncertainty.
func clockInterval(asked int, measuring bool) time.Duration {
	switch {
	case asked < 10:
		return 50 * time.Millisecond
	case measuring:
		return 500 * time.Millisecond
	}
	return 2 * time.Second
}

// control is the goroutine of signalling and negotiation.
type control struct {
	session *Session
	// ended is the reason for which the server has ended the peer connection, nil while the connection is in use.
	ended *signal.Error
	// stale is set while the peer connection is not one of the present server.
	stale bool
	// making is the attempt to connect to another server, former the connection to the server that the session moves
	// from. Both are nil at other times.
	making *making
	former *former
	// severed is set if the websocket has ended during an attempt. The result of the attempt decides.
	severed bool
	// estimate is the server's last estimate of the downlink.
	estimate volumetric.Bitrate
	// silence detects that the server neither sends nor replies.
	silence silence
}

// run serves the session until it ends, and then frees its resources.
func (c *control) run() {
	s := c.session
	defer s.running.Done()
	defer c.free()
	defer s.confine()
	clock := time.NewTimer(0)
	defer clock.Stop()
	silent := time.NewTicker(silenceInterval)
	defer silent.Stop()
	asked := 0
	times := time.NewTicker(timesInterval)
	defer times.Stop()
	updates := time.NewTimer(signalling.UpdateInterval)
	defer updates.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case m, open := <-c.messages():
			if open {
				c.handle(m)
				continue
			}
			if c.making != nil {
				// The other server has the session, and its reply is still on the way.
				c.severed = true
				continue
			}
			if s.leaving.Load() {
				// The server has closed the websocket, as Close requested.
				s.cancel(ErrClosed)
				return
			}
			c.resume(s.conn.Err(), nil)
		case <-s.currentPeer().Notify():
			for _, e := range s.currentPeer().Events() {
				c.peerEvent(c.link(), e)
			}
		case m, open := <-c.former.messages():
			c.handleFormer(m, open)
		case <-c.former.notify():
			for _, e := range c.former.media.peer.Load().Events() {
				c.peerEvent(c.former.link, e)
			}
		case made := <-c.making.result():
			c.made(made)
		case <-s.updates.Wake():
			s.updates.Send(s.conn, updates)
		case <-updates.C:
			s.updates.Send(s.conn, updates)
		case <-clock.C:
			// Without a clock to estimate, the replies still have the round-trip time.
			if local, asks := s.media().clockQuestion(time.Now()); asks || s.servers.several() {
				s.conn.Write(&signal.Time{T0: local.UnixMicro()})
			}
			clock.Reset(clockInterval(asked, s.media().tracing.TracesSent() || s.media().tracing.TracesReceived()))
			asked++
		case <-times.C:
			s.media().reportTimes()
		case <-silent.C:
			// The time of the tick would be old after a long resume.
			now := time.Now()
			c.checkSilence(now)
			c.checkFormer(now)
		}
	}
}

// messages returns the channel of the messages of the present server.
func (c *control) messages() <-chan signal.Message {
	if c.severed {
		return nil
	}
	return c.session.conn.Messages()
}

// free frees the session's resources. The channels that the program reads are closed last, when no goroutine writes to
// them.
func (c *control) free() {
	s := c.session
	defer close(s.events)
	for _, end := range []func(){
		s.media().reportTimes,
		c.cancelMaking,
		c.retire,
		func() { s.conn.Close() },
		func() { _ = s.currentPeer().Close() },
		func() { _ = s.endpoint.Close() },
		func() { s.media().end() },
		s.data.end,
		func() { s.media().tracing.End() },
	} {
		s.try(end)
	}
}

// handle processes one message of the server.
func (c *control) handle(m signal.Message) {
	s := c.session
	if s.requests.Reply(m) || s.data.reply(m) || c.handleMedia(c.link(), m) {
		return
	}
	switch m := m.(type) {
	case *signal.Pose:
		s.events.add(posed(m))
	case *signal.Bandwidth:
		c.estimate = m.Estimate
		s.events.add(Bandwidth{Estimate: m.Estimate, Allocated: m.Allocated, Wanted: m.Wanted, L4S: m.L4S})
	case *signal.TimeReply:
		c.silence.measured(s.media().clockReply(m, time.Now()))
	case *signal.Trace:
		s.media().tracing.SetReporting(m.FrameTimes)
	case *signal.FrameTimes:
		if sent, arrived, ok := s.media().tracing.Told(m, time.Now()); ok {
			s.media().travelled(sent, arrived)
		}
	case *signal.Data:
		s.data.ordered(m)
	case *signal.Closing:
		c.closing(m)
	case *signal.Nodes:
		s.servers.set(m.Nodes)
		s.renew(m.Secret)
	case *signal.Moved:
		c.moved(m)
	case *signal.Error:
		s.log.Warn("server reports an error", "code", m.Code, "message", m.Message)
	default:
		if left, ok := m.(*signal.ParticipantLeft); ok {
			s.data.forget(left.Identity)
		}
		s.presence.change(m)
		switch m := m.(type) {
		case *signal.Published:
			s.media().restart(volumetric.PublicationRef{Participant: m.Participant,
				Publication: m.Publication.Name})
		case *signal.Unpublished:
			s.media().restart(m.PublicationRef)
		}
		if e := s.roster.change(m); e != nil {
			s.events.add(e)
		}
	}
}

// handleMedia processes a message about the media of a connection, and reports whether the message is one.
func (c *control) handleMedia(l link, m signal.Message) bool {
	s := c.session
	switch m := m.(type) {
	case *signal.Offer:
		if err := c.negotiate(l, m); err != nil {
			s.cancel(fmt.Errorf("negotiation: %w", err))
		}
	case *signal.Candidate:
		candidate := transport.Candidate{Candidate: m.Candidate, MID: m.MID, LineIndex: m.LineIndex}
		if err := l.media.peer.Load().AddCandidate(candidate); err != nil {
			s.log.Warn("server's candidate cannot be used", "error", err)
		}
	case *signal.Assignments:
		c.assign(l, m)
	case *signal.Sending:
		for _, e := range l.media.sending(m, time.Now()) {
			s.events.add(e)
		}
	case *signal.Delivery:
		l.media.delivery(m)
	case *signal.Wanted:
		for _, w := range m.Publications {
			if publisher := s.Publisher(w.Publication); publisher != nil {
				publisher.want(l.media, w)
			}
		}
	default:
		return false
	}
	return true
}

// checkSilence asks a silent server for a reply, and continues the session on another server if there is none.
func (c *control) checkSilence(now time.Time) {
	s := c.session
	if c.severed {
		return
	}
	received, expected := s.media().expected(now)
	if c.former != nil {
		// Until the session is on one server, media comes from either.
		expected = false
	}
	if message := s.conn.LastReceived(); message.After(received) {
		received = message
	}
	switch c.silence.step(now, received, expected, s.servers.several()) {
	case verdictAsk:
		local, _ := s.media().clockQuestion(now)
		s.conn.Write(&signal.Time{T0: local.UnixMicro()})
	case verdictLeave:
		c.resume(errSilent, nil)
	}
}

// closing processes the server's announcement that it ends the session.
func (c *control) closing(m *signal.Closing) {
	s := c.session
	if m.Code == signal.CodeReplaced && c.making != nil {
		// The other server has the session.
		return
	}
	s.events.add(Closing{Code: m.Code, Message: m.Message, Grace: time.Duration(m.GraceMS) * time.Millisecond})
	ended := &signal.Error{Code: m.Code, Message: m.Message}
	switch {
	case m.GraceMS != 0, m.Code == signal.CodeSlowReader:
	case m.Code == signal.CodeConnection:
		// The session may continue with a new peer connection. The reply to the resumption decides.
		s.media().disconnect()
		c.ended = ended
	default:
		s.cancel(ended)
	}
}
