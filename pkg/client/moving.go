package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// moveTime is the time for a move if the server names none.
	moveTime = 10 * time.Second
	// overlap bounds the time for which a client receives from two servers after both are connected: the slots of the
	// second need two round trips, and tiles that are not in sight may not come at all.
	overlap = 2 * time.Second
	// linger is the time for which the former connection stays after it is not needed: for the requests for packets of
	// its last frames.
	linger = 300 * time.Millisecond
)

// link is the websocket and the media of a server.
type link struct {
	conn  *signalling.Conn
	media *media
}

// link returns the connection to the server on which the session is.
func (c *control) link() link { return link{c.session.conn, c.session.media()} }

// making is an attempt to connect to another server beside the present one.
type making struct {
	moved  *signal.Moved
	cancel context.CancelFunc
	done   chan made
	// deadline is the time at which the present server ends the session.
	deadline time.Time
}

// made is the result of an attempt.
type made struct {
	address string
	conn    *signalling.Conn
	joined  *signal.Joined
	err     error
}

// result returns the channel of the result, nil if there is no attempt.
func (m *making) result() <-chan made {
	if m == nil {
		return nil
	}
	return m.done
}

// former is the connection to the server that the session moves from.
type former struct {
	link
	// requests is the number of requests that were sent over this connection.
	requests int
	deadline time.Time
	// connected is the time when the second connection was established, idle the time since which the former one is
	// not needed.
	connected, idle time.Time
}

// messages returns the channel of the messages of the former server, nil if there are none.
func (f *former) messages() <-chan signal.Message {
	if f == nil || f.conn == nil {
		return nil
	}
	return f.conn.Messages()
}

// notify returns the channel of the former peer connection, nil if there is none.
func (f *former) notify() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.media.peer.Load().Notify()
}

// moved processes the message that sends the client to another server.
func (c *control) moved(m *signal.Moved) {
	s := c.session
	if !m.MakeBeforeBreak || !s.servers.allows(m.URL) || c.needsConnection() {
		c.resume(errMoved, m)
		return
	}
	c.cancelMaking()
	c.retire()
	limit := moveTime
	if m.DeadlineMS > 0 {
		limit = time.Duration(m.DeadlineMS) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	c.making = &making{moved: m, cancel: cancel, done: make(chan made, 1), deadline: time.Now().Add(limit)}
	join := s.resumption(m.Ticket, true)
	join.BitrateLimits.Start = c.startBitrate(join.BitrateLimits)
	s.running.Add(1)
	go s.open(ctx, c.making, join)
}

// startBitrate returns the rate with which another server begins: the estimate of the present one, within the limits.
func (c *control) startBitrate(limits signal.BitrateLimits) volumetric.Bitrate {
	if c.estimate == 0 {
		return limits.Start
	}
	start := max(c.estimate, limits.Min)
	if limits.Max > 0 {
		start = min(start, limits.Max)
	}
	return start
}

// open is the goroutine of an attempt.
func (s *Session) open(ctx context.Context, m *making, join *signal.Join) {
	defer s.running.Done()
	result := made{address: m.moved.URL, err: errMoved}
	defer func() { m.done <- result }()
	defer s.confine()
	result = s.follow(ctx, result, join)
}

// follow joins a server, or the server to which that server sends the client.
func (s *Session) follow(ctx context.Context, m made, join *signal.Join) made {
	for moves := 0; ; moves++ {
		m.conn, m.joined, m.err = signalling.Join(ctx, s.config.signalling(m.address), join)
		var moved *signalling.MovedError
		if m.err == nil || moves == maxMoves || !errors.As(m.err, &moved) || !s.servers.allows(moved.Moved.URL) {
			return m
		}
		m.address, join.Resume.Secret = moved.Moved.URL, moved.Moved.Ticket
	}
}

// cancelMaking ends the attempt to connect to another server.
func (c *control) cancelMaking() {
	m, s := c.making, c.session
	if m == nil {
		return
	}
	c.making, c.severed = nil, false
	m.cancel()
	s.running.Go(func() {
		if result := <-m.done; result.conn != nil {
			result.conn.Close()
		}
	})
}

// made continues the session on the server that was joined. Media stays on the former connection until the peer
// connection to that server is established.
func (c *control) made(m made) {
	s, making, severed := c.session, c.making, c.severed
	c.making, c.severed = nil, false
	if m.err != nil {
		making.cancel()
		s.log.Warn("the server to which this client is sent cannot be joined", "error", m.err)
		c.resume(errMoved, making.moved)
		return
	}
	making.cancel()
	attributes := s.Attributes()
	before := c.link()
	next := newMediaAfter(before.media)
	peer, err := s.config.newPeer(s.endpoint, next, m.joined, s.data)
	if err != nil {
		m.conn.Close()
		c.resume(errors.Join(errMoved, err), nil)
		return
	}
	next.peer.Store(peer)
	s.mu.Lock()
	requests := s.requests.Made()
	s.conn = m.conn
	s.mu.Unlock()
	c.former = &former{link: before, requests: requests, deadline: making.deadline}
	if severed {
		c.handleFormer(nil, false)
	}
	s.path.Store(next)
	for _, p := range s.publishers.list() {
		p.follow(next)
	}
	s.servers.present = m.address
	s.servers.set(m.joined.Nodes)
	s.data.resume(m.conn, m.joined.DataReceived)
	s.welcome(m.joined)
	if m.joined.Restored != nil && !*m.joined.Restored {
		s.restore(m.conn, attributes)
	}
	next.start()
}

// handleFormer processes a message of the server that the session moves from. Only its media counts.
func (c *control) handleFormer(m signal.Message, open bool) {
	s := c.session
	if !open {
		c.former.conn.Close()
		c.former.conn = nil
		s.requests.AbandonUntil(c.former.requests)
		return
	}
	if !s.requests.Reply(m) && !s.data.reply(m) {
		c.handleMedia(c.former.link, m)
	}
}

// checkFormer leaves the former server when the connection to the present one carries everything.
func (c *control) checkFormer(now time.Time) {
	f, s := c.former, c.session
	if f == nil {
		return
	}
	switch {
	case !s.media().isConnected():
		if now.After(f.deadline) {
			c.resume(fmt.Errorf("%w, and no peer connection is established", errMoved), nil)
		}
		return
	case f.connected.IsZero():
		f.connected = now
	}
	if needed := c.needsFormer(now); needed {
		f.idle = time.Time{}
	} else if f.idle.IsZero() {
		f.idle = now
	}
	late := now.Sub(f.connected) > overlap || now.After(f.deadline)
	if late || !f.idle.IsZero() && now.Sub(f.idle) >= linger {
		c.retire()
		s.events.add(Moved{URL: s.servers.present})
	}
}

// needsFormer reports whether frames still come or leave over the former connection only.
func (c *control) needsFormer(now time.Time) bool {
	for _, p := range c.session.publishers.list() {
		if p.moves(now) {
			return true
		}
	}
	f, present := c.former.media, c.session.media()
	f.mu.Lock()
	defer f.mu.Unlock()
	_, queued := f.uplink.Due()
	return queued || !present.downlink.Covers(f.downlink, now)
}

// retire ends the connection to the server that the session has moved from.
func (c *control) retire() {
	f, s := c.former, c.session
	if f == nil {
		return
	}
	c.former = nil
	for _, p := range s.publishers.list() {
		p.leave()
	}
	m := s.media()
	m.mu.Lock()
	m.uplink.Add(f.media.uplink)
	m.mu.Unlock()
	f.media.stop()
	if f.conn != nil {
		f.conn.Close()
	}
	s.requests.AbandonUntil(f.requests)
}
