package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Waits between rounds of attempts to resume: the first round is made at once, then the wait doubles up to two seconds.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 2 * time.Second
	// nextServer is the least limit of an attempt of the first round if there are several servers. attemptTime derives
	// the limit from the round-trip time.
	nextServer = 1200 * time.Millisecond
	// maxRetryAfter bounds the wait that servers ask for.
	maxRetryAfter = 10 * time.Second
)

// attemptTime returns the limit of an attempt of the first round if there are several servers: TCP, TLS 1.3, the
// upgrade and the join take four round trips, TLS 1.2 one more, and TCP repeats a lost SYN after one second.
func attemptTime(rtt time.Duration) time.Duration { return max(nextServer, time.Second+5*rtt) }

// Reasons of Interrupted other than a broken websocket.
var (
	errSilent = errors.New("the server neither sends media nor replies")
	errMoved  = errors.New("the server sends this client to another server")
)

// resumePatience is the time for which a client tries to resume. The server's grace time begins when the server notices
// that the websocket is broken, which may be long after the client did. The server refuses a client that is too late.
func resumePatience(grace time.Duration) time.Duration { return 2 * grace }

// resume continues the session over another websocket, for as long as a server may accept that, and ends the session if
// none does. moved is the message by which the server sends the client to another server, nil otherwise.
func (c *control) resume(why error, moved *signal.Moved) {
	s := c.session
	if s.ctx.Err() != nil {
		return
	}
	c.cancelMaking()
	c.retire()
	former := s.servers.present
	s.events.add(Interrupted{why})
	if err := c.tryServers(why, moved); err != nil {
		s.cancel(err)
		return
	}
	if errors.Is(why, errSilent) && s.servers.present == former {
		c.silence.returned()
	}
	c.ended = nil
	s.events.add(Resumed{})
}

// tryServers makes attempts on all servers in turn until one succeeds. The error wraps ErrLost.
func (c *control) tryServers(why error, moved *signal.Moved) error {
	s := c.session
	grace := time.Duration(s.joined.Resume.GraceMS) * time.Millisecond
	ctx, cancel := context.WithTimeout(s.ctx, resumePatience(grace))
	defer cancel()
	times := s.config.times
	limit := times.Attempt
	if moved != nil || s.servers.several() {
		limit = min(limit, attemptTime(c.silence.rtt))
	}
	for wait := firstRetry; ; wait, limit = min(2*wait, lastRetry), min(2*limit, times.Dial) {
		type target struct{ address, ticket string }
		var targets []target
		if moved != nil && s.servers.allows(moved.URL) {
			targets = append(targets, target{moved.URL, moved.Ticket})
		}
		for _, address := range s.servers.candidates(errors.Is(why, errSilent)) {
			targets = append(targets, target{address, ""})
		}
		var err error
		round := refusals{several: len(targets) > 1}
		for _, t := range targets {
			elsewhere := t.ticket != "" || t.address != s.servers.present
			if err = c.tryResume(ctx, attempt{address: t.address, limit: limit}, t.ticket, elsewhere); err == nil {
				return nil
			}
			if round.add(refusal(err)) {
				return c.lost(err)
			}
		}
		if round.all() {
			return c.lost(err)
		}
		select {
		case <-time.After(max(wait, round.wait)):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrLost, errors.Join(why, err))
		}
	}
}

// lost returns the error with which the session ends after the last refusal.
func (c *control) lost(err error) error {
	if c.ended != nil {
		err = fmt.Errorf("%w: %w", c.ended, err)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// needsConnection reports whether the peer connection is not in use.
func (c *control) needsConnection() bool {
	return c.ended != nil || c.stale || !c.session.media().isConnected()
}

// tryResume makes an attempt to resume on a server, and on the servers to which that server sends the client. ticket
// replaces the session's secret unless it is empty. elsewhere is set if the server does not have the peer connection.
func (c *control) tryResume(ctx context.Context, a attempt, ticket string, elsewhere bool) error {
	s, unused := c.session, c.needsConnection()
	a.join = s.resumption(ticket, elsewhere || unused)
	result := s.follow(ctx, a, s.servers.present, unused)
	if result.err != nil {
		return result.err
	}
	conn, fresh := result.conn, a.join.Resume.NewConnection
	attributes := s.Attributes()
	s.conn.Close()
	if fresh {
		s.repeat(conn, result.reply, attributes)
	}
	s.mu.Lock()
	s.conn = conn
	s.requests.Abandon()
	s.mu.Unlock()
	s.servers.present = result.address
	s.servers.set(result.reply.Nodes)
	s.data.resume(conn, result.reply.DataReceived)
	s.welcome(result.reply)
	s.media().resendUplink()
	if !fresh {
		return nil
	}
	c.stale = true
	if err := c.replacePeer(); err != nil {
		return err
	}
	c.stale = false
	return nil
}

// resumption returns the join that resumes the session. ticket replaces the session's secret unless it is empty. fresh
// requests a new peer connection. Otherwise the server restarts ICE.
func (s *Session) resumption(ticket string, fresh bool) *signal.Join {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &signal.Join{
		Version:       signal.Version,
		Room:          s.joined.Room,
		Identity:      s.joined.Identity,
		Receive:       s.config.Receive,
		DeadlineMS:    int(s.config.Deadline.Milliseconds()),
		Pauses:        true,
		Multipath:     s.config.multipath(),
		BitrateLimits: s.limits,
		Resume: &signal.ResumeRequest{
			Session: s.joined.Session, Secret: cmp.Or(ticket, s.joined.Resume.Secret), NewConnection: fresh,
			DataReceived: s.data.lastReceived(),
		},
		MessageChannel: s.config.MessageChannel,
		Moves:          true,
	}
}

// replacePeer replaces the peer connection and the state of media that belongs to the connection.
func (c *control) replacePeer() error {
	s := c.session
	peer, err := s.config.newPeer(s.endpoint, s.media(), s.joined, s.data)
	if err != nil {
		return err
	}
	// Packets of the former connection have the same numbers. If they still arrived, they would count as packets of the
	// new one.
	_ = s.currentPeer().Close()
	s.media().reset()
	s.media().peer.Store(peer)
	return nil
}
