package client

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/failover"
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
	*parts
	// servers are the servers of the session.
	servers *failover.Servers
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
	silence failover.Silence
}

func newControl(p *parts) *control {
	return &control{parts: p, servers: failover.NewServers(p.config.URL, joiner{p.config})}
}

// joiner joins with the configuration of a session.
type joiner struct{ config Config }

// Join implements failover.Joiner.
func (j joiner) Join(
	ctx context.Context, address string, join *signal.Join,
) (*signalling.Conn, *signal.Joined, error) {
	return signalling.Join(ctx, j.config.signalling(address), join)
}

// run serves the session until it ends, and then frees its resources.
func (c *control) run() {
	defer c.free()
	c.lifetime.Try(c.serve)
}

// serve serves the session until it ends.
func (c *control) serve() {
	clock := time.NewTimer(0)
	defer clock.Stop()
	silent := time.NewTicker(failover.SilenceInterval)
	defer silent.Stop()
	asked := 0
	times := time.NewTicker(timesInterval)
	defer times.Stop()
	updates := time.NewTimer(signalling.UpdateInterval)
	defer updates.Stop()
	for {
		select {
		case <-c.lifetime.Done():
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
			if c.leaving.Load() {
				// The server has closed the websocket, as Close requested.
				c.lifetime.End(ErrClosed)
				return
			}
			c.resume(c.requests.Conn().Err(), nil)
		case <-c.path.currentPeer().Notify():
			for _, e := range c.path.currentPeer().Events() {
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
		case <-c.updates.Wake():
			c.updates.Send(c.requests.Conn(), updates)
		case <-updates.C:
			c.updates.Send(c.requests.Conn(), updates)
		case <-clock.C:
			// Without a clock to estimate, the replies still have the round-trip time.
			if local, asks := c.path.media().clockQuestion(time.Now()); asks || c.servers.Several() {
				c.requests.Conn().Write(&signal.Time{T0: local.UnixMicro()})
			}
			tracing := c.frameTimes.tracing
			clock.Reset(clockInterval(asked, tracing.TracesSent() || tracing.TracesReceived()))
			asked++
		case <-times.C:
			c.frameTimes.report()
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
	return c.requests.Conn().Messages()
}

// free frees the session's resources. The channels that the program reads are closed last, when no goroutine writes to
// them.
func (c *control) free() {
	defer close(c.events)
	for _, end := range []func(){
		c.frameTimes.report,
		c.cancelMaking,
		c.retire,
		func() { c.requests.Conn().Close() },
		func() { _ = c.path.currentPeer().Close() },
		func() { _ = c.endpoint.Close() },
		func() { c.path.media().end() },
		c.data.End,
		func() { close(c.inbox) },
		func() { c.frameTimes.tracing.End() },
	} {
		c.lifetime.Try(end)
	}
}

// handle processes one message of the server.
func (c *control) handle(m signal.Message) {
	if c.requests.Reply(m) || c.data.Reply(m) || c.handleMedia(c.link(), m) {
		return
	}
	switch m := m.(type) {
	case *signal.Bandwidth:
		c.estimate = m.Estimate
		c.events.add(Bandwidth{Estimate: m.Estimate, Allocated: m.Allocated, Wanted: m.Wanted, L4S: m.L4S})
	case *signal.TimeReply:
		c.silence.Measured(c.path.media().clockReply(m, time.Now()))
	case *signal.Trace:
		c.frameTimes.tracing.SetReporting(m.FrameTimes)
	case *signal.FrameTimes:
		if sent, arrived, ok := c.frameTimes.tracing.Told(m, time.Now()); ok {
			c.path.media().travelled(sent, arrived)
		}
	case *signal.Data:
		c.data.Ordered(m)
	case *signal.Closing:
		c.closing(m)
	case *signal.Nodes:
		c.servers.Set(m.Nodes)
		c.room.renew(m.Secret)
	case *signal.Moved:
		c.moved(m)
	case *signal.Error:
		c.config.Log.Warn("server reports an error", "code", m.Code, "message", m.Message)
	default:
		if left, ok := m.(*signal.ParticipantLeft); ok {
			c.data.Forget(left.Identity)
		}
		switch m := m.(type) {
		case *signal.Published:
			c.path.media().restart(volumetric.PublicationRef{Participant: m.Participant,
				Publication: m.Publication.Name})
		case *signal.Unpublished:
			c.path.media().restart(m.PublicationRef)
		}
		if e := c.room.change(m); e != nil {
			c.events.add(e)
		}
	}
}

// handleMedia processes a message about the media of a connection, and reports whether the message is one.
func (c *control) handleMedia(l link, m signal.Message) bool {
	switch m := m.(type) {
	case *signal.Offer:
		if err := c.negotiate(l, m); err != nil {
			c.lifetime.End(fmt.Errorf("negotiation: %w", err))
		}
	case *signal.Candidate:
		candidate := transport.Candidate{Candidate: m.Candidate, MID: m.MID, LineIndex: m.LineIndex}
		if err := l.media.peer.Load().AddCandidate(candidate); err != nil {
			c.config.Log.Warn("server's candidate cannot be used", "error", err)
		}
	case *signal.Assignments:
		c.assign(l, m)
	case *signal.Sending:
		for _, e := range l.media.sending(m, time.Now()) {
			c.events.add(e)
		}
	case *signal.Delivery:
		l.media.delivery(m)
	case *signal.Wanted:
		for _, w := range m.Publications {
			if publisher := c.publishers.get(w.Publication); publisher != nil {
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
	if c.severed {
		return
	}
	received, expected := c.path.media().expected(now)
	if c.former != nil {
		// Until the session is on one server, media comes from either.
		expected = false
	}
	if message := c.requests.Conn().LastReceived(); message.After(received) {
		received = message
	}
	switch c.silence.Step(now, received, expected, c.servers.Several()) {
	case failover.VerdictAsk:
		local, _ := c.path.media().clockQuestion(now)
		c.requests.Conn().Write(&signal.Time{T0: local.UnixMicro()})
	case failover.VerdictLeave:
		c.resume(errSilent, nil)
	}
}

// closing processes the server's announcement that it ends the session.
func (c *control) closing(m *signal.Closing) {
	if m.Code == signal.CodeReplaced && c.making != nil {
		// The other server has the session.
		return
	}
	c.events.add(Closing{Code: m.Code, Message: m.Message, Grace: time.Duration(m.GraceMS) * time.Millisecond})
	ended := &signal.Error{Code: m.Code, Message: m.Message}
	switch {
	case m.GraceMS != 0, m.Code == signal.CodeSlowReader:
	case m.Code == signal.CodeConnection:
		// The session may continue with a new peer connection. The reply to the resumption decides.
		c.path.media().disconnect()
		c.ended = ended
	default:
		c.lifetime.End(ended)
	}
}

// negotiate applies an offer and sends the answer. The lines of the offer are attached between the two descriptions.
func (c *control) negotiate(l link, offer *signal.Offer) error {
	peer := l.media.peer.Load()
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
			l.media.detach(m.MID)
		default:
			publisher := c.publishers.get(m.Publication)
			if publisher == nil || m.Quality == nil || !publisher.has(m.Tile, *m.Quality) {
				continue
			}
			outlet, err := peer.Sending(m.MID)
			if err != nil {
				return err
			}
			publisher.attach(l.media, m.MID, outlet, m.Tile, *m.Quality)
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
	known := &signal.Acknowledge{}
	for _, a := range m.Assignments {
		var publication *volumetric.Publication
		if a.Track != nil {
			if p, ok := c.room.publication(a.Track.PublicationRef); ok {
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
			c.events.add(Connected{})
		}
	case transport.StateFailed, transport.StateClosed:
		l.media.disconnect()
	}
}
