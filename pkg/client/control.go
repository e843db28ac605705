package client

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
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
		case m, open := <-s.conn.Messages():
			if open {
				c.handle(m)
				continue
			}
			if s.leaving.Load() {
				// The server has closed the websocket, as Close requested.
				s.cancel(ErrClosed)
				return
			}
			c.resume(s.conn.Err(), nil)
		case <-s.peer.Notify():
			for _, e := range s.peer.Events() {
				c.peerEvent(e)
			}
		case <-s.updates.Wake():
			s.updates.Send(s.conn, updates)
		case <-updates.C:
			s.updates.Send(s.conn, updates)
		case <-clock.C:
			// Without a clock to estimate, the replies still have the round-trip time.
			if local, asks := s.media.clockQuestion(time.Now()); asks || s.servers.several() {
				s.conn.Write(&signal.Time{T0: local.UnixMicro()})
			}
			clock.Reset(clockInterval(asked, s.media.tracing.TracesSent() || s.media.tracing.TracesReceived()))
			asked++
		case <-times.C:
			s.media.reportTimes()
		case <-silent.C:
			// The time of the tick would be old after a long resume.
			c.checkSilence(time.Now())
		}
	}
}

// free frees the session's resources. The channels that the program reads are closed last, when no goroutine writes to
// them.
func (c *control) free() {
	s := c.session
	defer close(s.events)
	for _, end := range []func(){
		s.media.reportTimes,
		func() { s.conn.Close() },
		func() { _ = s.peer.Close() },
		func() { _ = s.endpoint.Close() },
		func() { s.media.end() },
		s.data.end,
		func() { s.media.tracing.End() },
	} {
		s.try(end)
	}
}

// handle processes one message of the server.
func (c *control) handle(m signal.Message) {
	s := c.session
	if s.requests.Reply(m) || s.data.reply(m) {
		return
	}
	switch m := m.(type) {
	case *signal.Offer:
		if err := c.negotiate(m); err != nil {
			s.cancel(fmt.Errorf("negotiation: %w", err))
		}
	case *signal.Candidate:
		candidate := transport.Candidate{Candidate: m.Candidate, MID: m.MID, LineIndex: m.LineIndex}
		if err := s.peer.AddCandidate(candidate); err != nil {
			s.log.Warn("server's candidate cannot be used", "error", err)
		}
	case *signal.Assignments:
		c.assign(m)
	case *signal.Sending:
		for _, e := range s.media.sending(m, time.Now()) {
			s.events.add(e)
		}
	case *signal.Delivery:
		s.media.delivery(m)
	case *signal.Wanted:
		for _, w := range m.Publications {
			if publisher := s.Publisher(w.Publication); publisher != nil {
				s.events.add(publisher.want(w))
			}
		}
	case *signal.Pose:
		s.events.add(posed(m))
	case *signal.Bandwidth:
		s.events.add(Bandwidth{Estimate: m.Estimate, Allocated: m.Allocated, Wanted: m.Wanted, L4S: m.L4S})
	case *signal.TimeReply:
		c.silence.measured(s.media.clockReply(m, time.Now()))
	case *signal.Trace:
		s.media.tracing.SetReporting(m.FrameTimes)
	case *signal.FrameTimes:
		if sent, arrived, ok := s.media.tracing.Told(m, time.Now()); ok {
			s.media.travelled(sent, arrived)
		}
	case *signal.Data:
		s.data.ordered(m)
	case *signal.Closing:
		c.closing(m)
	case *signal.Nodes:
		s.servers.set(m.Nodes)
	case *signal.Moved:
		c.resume(errMoved, m)
	case *signal.Error:
		s.log.Warn("server reports an error", "code", m.Code, "message", m.Message)
	default:
		if left, ok := m.(*signal.ParticipantLeft); ok {
			s.data.forget(left.Identity)
		}
		s.presence.change(m)
		if e := s.roster.change(m); e != nil {
			s.events.add(e)
		}
	}
}

// checkSilence asks a silent server for a reply, and continues the session on another server if there is none.
func (c *control) checkSilence(now time.Time) {
	s := c.session
	received, expected := s.media.expected(now)
	if message := s.conn.LastReceived(); message.After(received) {
		received = message
	}
	switch c.silence.step(now, received, expected, s.servers.several()) {
	case verdictAsk:
		local, _ := s.media.clockQuestion(now)
		s.conn.Write(&signal.Time{T0: local.UnixMicro()})
	case verdictLeave:
		c.resume(errSilent, nil)
	}
}

// closing processes the server's announcement that it ends the session.
func (c *control) closing(m *signal.Closing) {
	s := c.session
	s.events.add(Closing{Code: m.Code, Message: m.Message, Grace: time.Duration(m.GraceMS) * time.Millisecond})
	ended := &signal.Error{Code: m.Code, Message: m.Message}
	switch {
	case m.GraceMS != 0, m.Code == signal.CodeSlowReader:
	case m.Code == signal.CodeConnection:
		// The session may continue with a new peer connection. The reply to the resumption decides.
		s.media.disconnect()
		c.ended = ended
	default:
		s.cancel(ended)
	}
}
