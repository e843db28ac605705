package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/failover"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Reasons of Interrupted other than a broken websocket.
var (
	errSilent = errors.New("the server neither sends media nor replies")
	errMoved  = errors.New("the server sends this client to another server")
)

// resumePatience is the time for which a client tries to resume. The server's grace time begins when the server notices
// that the websocket is broken, which may be long after the client did. The server refuses a client that is too late.
func resumePatience(grace time.Duration) time.Duration { return 2 * grace }

// enter joins, and makes the peer connection and the publishers.
func (c *control) enter(ctx context.Context) error {
	limits := c.config.limits(c.config.MaxBitrate, 0)
	c.requested.Limit(limits)
	conn, joined, err := c.servers.Join(ctx, &signal.Join{
		Version:      signal.Version,
		Room:         c.config.Room,
		Identity:     c.config.Identity,
		Publications: c.config.Publications,
		Receive:      c.config.Receive,
		DeadlineMS:   int(c.config.Deadline.Milliseconds()),
		Pauses:       true,
		FrameTimes:   c.config.FrameTimes,
		Multipath:    c.config.multipath(),

		BitrateLimits:  limits,
		MessageChannel: c.config.MessageChannel,
		Moves:          true,
	})
	if err != nil {
		return err
	}
	peer, err := c.newPeer(c.path.media(), joined)
	if err != nil {
		conn.Close()
		return err
	}
	c.path.media().peer.Store(peer)
	c.requests.Continue(conn)
	c.data.Resume(conn, 0)
	c.welcome(joined)
	if err := c.publishers.begin(joined); err != nil {
		conn.Close()
		return err
	}
	return nil
}

// welcome stores the server's description of the room.
func (c *control) welcome(joined *signal.Joined) {
	c.room.welcome(joined)
	c.frameTimes.tracing.SetIdentity(joined.Identity)
}

// resume continues the session over another websocket, for as long as a server may accept that, and ends the session if
// none does. moved is the message by which the server sends the client to another server, nil otherwise.
func (c *control) resume(why error, moved *signal.Moved) {
	if c.lifetime.Err() != nil {
		return
	}
	c.cancelMaking()
	c.retire()
	former := c.servers.Present()
	c.events.add(Interrupted{why})
	if err := c.tryServers(why, moved); err != nil {
		c.lifetime.End(err)
		return
	}
	if errors.Is(why, errSilent) && c.servers.Present() == former {
		c.silence.Returned()
	}
	c.ended = nil
	c.events.add(Resumed{})
}

// tryServers makes attempts on all servers in turn until one succeeds. The error wraps ErrLost.
func (c *control) tryServers(why error, moved *signal.Moved) error {
	grace := time.Duration(c.room.reply().Resume.GraceMS) * time.Millisecond
	ctx, cancel := context.WithTimeout(c.lifetime.Context(), resumePatience(grace))
	defer cancel()
	times := c.config.times
	limit := times.Attempt
	if moved != nil || c.servers.Several() {
		limit = min(limit, c.silence.AttemptTime())
	}
	for wait := failover.FirstRetry; ; wait, limit = min(2*wait, failover.LastRetry), min(2*limit, times.Dial) {
		type target struct{ address, ticket string }
		var targets []target
		if moved != nil && c.servers.Allows(moved.URL) {
			targets = append(targets, target{moved.URL, moved.Ticket})
		}
		for _, address := range c.servers.Candidates(errors.Is(why, errSilent)) {
			targets = append(targets, target{address, ""})
		}
		var err error
		round := failover.Round{Several: len(targets) > 1}
		for _, t := range targets {
			elsewhere := t.ticket != "" || t.address != c.servers.Present()
			a := failover.Attempt{Address: t.address, Limit: limit}
			if err = c.tryResume(ctx, a, t.ticket, elsewhere); err == nil {
				return nil
			}
			if round.Failed(err) {
				return c.lost(err)
			}
		}
		if round.Refused() {
			return c.lost(err)
		}
		select {
		case <-time.After(max(wait, round.Wait())):
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
	return c.ended != nil || c.stale || !c.path.media().isConnected()
}

// tryResume makes an attempt to resume on a server, and on the servers to which that server sends the client. ticket
// replaces the session's secret unless it is empty. elsewhere is set if the server does not have the peer connection.
func (c *control) tryResume(ctx context.Context, a failover.Attempt, ticket string, elsewhere bool) error {
	unused := c.needsConnection()
	a.Join, a.Present, a.Unused = c.resumption(ticket, elsewhere || unused), c.servers.Present(), unused
	result := c.servers.Follow(ctx, a)
	if result.Err != nil {
		return result.Err
	}
	conn, fresh := result.Conn, a.Join.Resume.NewConnection
	attributes := c.Attributes()
	c.requests.Conn().Close()
	if fresh {
		c.repeat(conn, result.Joined, attributes)
	}
	c.requests.Continue(conn)
	c.servers.Continue(result.Address, result.Joined.Nodes)
	c.data.ForgetAll()
	c.data.Resume(conn, result.Joined.DataReceived)
	c.welcome(result.Joined)
	c.path.media().resendUplink()
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
func (c *control) resumption(ticket string, fresh bool) *signal.Join {
	joined := c.room.reply()
	return &signal.Join{
		Version:       signal.Version,
		Room:          joined.Room,
		Identity:      joined.Identity,
		Receive:       c.config.Receive,
		DeadlineMS:    int(c.config.Deadline.Milliseconds()),
		Pauses:        true,
		Multipath:     c.config.multipath(),
		BitrateLimits: c.requested.Limits(),
		Resume: &signal.ResumeRequest{
			Session: joined.Session, Secret: cmp.Or(ticket, joined.Resume.Secret), NewConnection: fresh,
			DataReceived: c.data.LastReceived(),
		},
		MessageChannel: c.config.MessageChannel,
		Moves:          true,
	}
}

// replacePeer replaces the peer connection and the state of media that belongs to the connection.
func (c *control) replacePeer() error {
	peer, err := c.newPeer(c.path.media(), c.room.reply())
	if err != nil {
		return err
	}
	// Packets of the former connection have the same numbers. If they still arrived, they would count as packets of the
	// new one.
	_ = c.path.currentPeer().Close()
	c.path.media().reset()
	c.path.media().peer.Store(peer)
	return nil
}

// repeat sends the state that this client has requested to a server on which the session continues with a new peer
// connection. reply is that server's. A server without the state gets all of it. Another one gets what the former
// server may have accepted after it had passed the state on. The program cannot send over the websocket yet, so that
// later requests prevail. Errors are logged as they arrive.
func (c *control) repeat(conn *signalling.Conn, reply *signal.Joined, attributes map[string]string) {
	lost := reply.Restored != nil && !*reply.Restored
	var names []string
	if lost {
		for _, p := range c.publishers.list() {
			names = append(names, p.description.Name)
			conn.Write(&signal.Publish{Publication: p.description})
		}
		if len(attributes) > 0 {
			conn.Write(&signal.Attributes{Attributes: attributes})
		}
	}
	for _, m := range c.requested.Messages(func(name string) bool { return c.publishers.get(name) != nil }) {
		conn.Write(m)
	}
	if lost {
		if c.frameTimes.tracing.TracesReceived() {
			conn.Write(&signal.Trace{FrameTimes: true})
		}
		c.updates.Repeat(names)
	}
}
