package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Waits between rounds of attempts to resume: the first round is made at once, then the wait doubles up to two seconds.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 2 * time.Second
	// nextServer limits an attempt of the first round if there are several servers: a connection, a join and the reply
	// take three round trips, and a lost packet of TCP is repeated after one second.
	nextServer = 1200 * time.Millisecond
)

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
	s.events.add(Interrupted{why})
	if err := c.tryServers(why, moved); err != nil {
		s.cancel(err)
		return
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
	if moved != nil || len(s.servers.others) > 0 {
		limit = min(limit, nextServer)
	}
	for wait := firstRetry; ; wait, limit = min(2*wait, lastRetry), min(2*limit, times.Dial) {
		var round []attempt
		if moved != nil && s.servers.allows(moved.URL) {
			round = append(round, attempt{moved.URL, moved.Ticket, true, limit})
		}
		for _, address := range s.servers.candidates(errors.Is(why, errSilent)) {
			fresh := c.needsConnection() || address != s.servers.present
			round = append(round, attempt{address, s.joined.Resume.Secret, fresh, limit})
		}
		var err error
		for _, a := range round {
			if err = c.follow(ctx, a); err == nil {
				return nil
			}
			if refused := c.refused(err); refused != nil {
				return refused
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrLost, errors.Join(why, err))
		}
	}
}

// refused returns the error with which the session ends if a server has refused the resume, nil if another attempt may
// succeed.
func (c *control) refused(err error) error {
	var refused *signal.Error
	if !errors.As(err, &refused) || refused.RetryAfterMS > 0 ||
		refused.Code == signal.CodeDraining && len(c.session.servers.others) > 0 {
		return nil
	}
	if c.ended != nil {
		err = fmt.Errorf("%w: %w", c.ended, err)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// needsConnection reports whether the peer connection is not in use.
func (c *control) needsConnection() bool { return c.ended != nil || !c.session.media.isConnected() }

// attempt is one attempt to resume.
type attempt struct {
	// address is that of the server, secret the resume secret or the ticket of a message Moved.
	address, secret string
	// fresh requests a new peer connection. Otherwise the server restarts ICE.
	fresh bool
	limit time.Duration
}

// follow makes an attempt on a server, and on the servers to which that server sends the client. Those have the peer
// connection.
func (c *control) follow(ctx context.Context, a attempt) error {
	for moves := 0; ; moves++ {
		err := c.tryResume(ctx, a)
		var moved *signalling.MovedError
		if moves == maxMoves || !errors.As(err, &moved) || !c.session.servers.allows(moved.Moved.URL) {
			return err
		}
		a.address, a.secret, a.fresh = moved.Moved.URL, moved.Moved.Ticket, c.needsConnection()
	}
}

// tryResume makes one attempt on one server.
func (c *control) tryResume(ctx context.Context, a attempt) error {
	s := c.session
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	s.mu.Lock()
	limits := s.limits
	s.mu.Unlock()
	join := &signal.Join{
		Version:       signal.Version,
		Room:          s.joined.Room,
		Identity:      s.joined.Identity,
		Receive:       s.config.Receive,
		DeadlineMS:    int(s.config.Deadline.Milliseconds()),
		Pauses:        true,
		Multipath:     s.config.multipath(),
		BitrateLimits: limits,
		Resume: &signal.ResumeRequest{
			Session: s.joined.Session, Secret: a.secret, NewConnection: a.fresh, DataReceived: s.data.lastReceived(),
		},
		MessageChannel: s.config.MessageChannel,
		Moves:          true,
	}
	conn, joined, err := signalling.Join(ctx, s.config.signalling(a.address), join)
	if err != nil {
		return err
	}
	attributes := s.Attributes()
	s.conn.Close()
	s.mu.Lock()
	s.conn = conn
	s.requests.Abandon()
	s.mu.Unlock()
	s.servers.present = a.address
	s.servers.set(joined.Nodes)
	s.data.resume(conn, joined.DataReceived)
	s.welcome(joined)
	s.media.resendUplink()
	if a.fresh {
		if err := c.replacePeer(); err != nil {
			return err
		}
	}
	if joined.Restored != nil && !*joined.Restored {
		s.restore(conn, attributes)
	}
	return nil
}

// replacePeer replaces the peer connection and the state of media that belongs to the connection.
func (c *control) replacePeer() error {
	s := c.session
	peer, err := s.config.newPeer(s.endpoint, s.media, s.joined, s.data)
	if err != nil {
		return err
	}
	// Packets of the former connection have the same numbers. If they still arrived, they would count as packets of the
	// new one.
	_ = s.peer.Close()
	s.media.reset()
	s.mu.Lock()
	s.peer = peer
	s.mu.Unlock()
	return nil
}
