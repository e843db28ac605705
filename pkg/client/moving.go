package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/failover"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// moveTime is the time for a move if the server names none.
	moveTime = 10 * time.Second
	// overlap bounds the time for which a client waits for tiles of the second server after both are connected: the
	// slots of the second need two round trips, and tiles that are not in sight may not come at all.
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
func (c *control) link() link { return link{c.requests.Conn(), c.path.media()} }

// making is an attempt to connect to another server beside the present one.
type making struct {
	moved  *signal.Moved
	cancel context.CancelFunc
	done   chan failover.Outcome
	// deadline is the time at which the present server ends the session.
	deadline time.Time
}

// result returns the channel of the result, nil if there is no attempt.
func (m *making) result() <-chan failover.Outcome {
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
	// connected is the time when the second connection was established, idleSince the time when the former one became
	// unnecessary.
	connected, idleSince time.Time
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
	if !m.MakeBeforeBreak || !c.servers.Allows(m.URL) || c.needsConnection() {
		c.resume(errMoved, m)
		return
	}
	c.cancelMaking()
	c.retire()
	limit := moveTime
	if m.DeadlineMS > 0 {
		limit = time.Duration(m.DeadlineMS) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(c.lifetime.Context(), limit)
	c.making = &making{moved: m, cancel: cancel, done: make(chan failover.Outcome, 1), deadline: time.Now().Add(limit)}
	join := c.resumption(m.Ticket, true)
	join.BitrateLimits.Start = c.startBitrate(join.BitrateLimits)
	c.open(ctx, c.making, join)
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

// open starts the goroutine of an attempt.
func (c *control) open(ctx context.Context, m *making, join *signal.Join) {
	c.lifetime.Go(func() {
		result := failover.Outcome{Address: m.moved.URL, Err: errMoved}
		defer func() { m.done <- result }()
		c.lifetime.Try(func() {
			result = c.servers.Follow(ctx, failover.Attempt{Address: m.moved.URL, Join: join, Unused: true})
		})
	})
}

// cancelMaking ends the attempt to connect to another server.
func (c *control) cancelMaking() {
	m := c.making
	if m == nil {
		return
	}
	c.making, c.severed = nil, false
	m.cancel()
	c.lifetime.Go(func() {
		if result := <-m.done; result.Conn != nil {
			result.Conn.Close()
		}
	})
}

// made continues the session on the server that was joined. Media stays on the former connection until the peer
// connection to that server is established.
func (c *control) made(m failover.Outcome) {
	making, severed := c.making, c.severed
	c.making, c.severed = nil, false
	if m.Err != nil {
		making.cancel()
		c.config.Log.Warn("the server to which this client is sent cannot be joined", "error", m.Err)
		c.resume(errMoved, making.moved)
		return
	}
	making.cancel()
	attributes := c.Attributes()
	before := c.link()
	next := newMediaAfter(before.media)
	peer, err := c.newPeer(next, m.Joined)
	if err != nil {
		m.Conn.Close()
		c.resume(errors.Join(errMoved, err), nil)
		return
	}
	next.peer.Store(peer)
	before.media.leave()
	c.repeat(m.Conn, m.Joined, attributes)
	c.former = &former{link: before, requests: c.requests.Move(m.Conn), deadline: making.deadline}
	if severed {
		c.handleFormer(nil, false)
	}
	c.path.present.Store(next)
	for _, p := range c.publishers.list() {
		p.follow(next)
	}
	c.servers.Continue(m.Address, m.Joined.Nodes)
	c.data.Resume(m.Conn, m.Joined.DataReceived)
	c.welcome(m.Joined)
	next.start()
}

// handleFormer processes a message of the server that the session moves from. Only its media counts.
func (c *control) handleFormer(m signal.Message, open bool) {
	if !open {
		c.former.conn.Close()
		c.former.conn = nil
		c.requests.AbandonUntil(c.former.requests)
		return
	}
	if !c.requests.Reply(m) && !c.data.Reply(m) {
		c.handleMedia(c.former.link, m)
	}
}

// checkFormer leaves the former server when the connection to the present one carries everything.
func (c *control) checkFormer(now time.Time) {
	f := c.former
	if f == nil {
		return
	}
	switch {
	case !c.path.media().isConnected():
		if now.After(f.deadline) {
			c.resume(fmt.Errorf("%w, and no peer connection is established", errMoved), nil)
		}
		return
	case f.connected.IsZero():
		f.connected = now
	}
	if c.sendsOnFormer(now) || c.receivesOnFormer(now) && now.Sub(f.connected) <= overlap {
		f.idleSince = time.Time{}
	} else if f.idleSince.IsZero() {
		f.idleSince = now
	}
	if now.After(f.deadline) || !f.idleSince.IsZero() && now.Sub(f.idleSince) >= linger {
		c.retire()
		c.events.add(Moved{URL: c.servers.Present()})
	}
}

// sendsOnFormer reports whether frames leave over the former connection only: the present one does not have all tracks.
func (c *control) sendsOnFormer(now time.Time) bool {
	for _, p := range c.publishers.list() {
		if p.moves(now) {
			return true
		}
	}
	f := c.former.media
	f.mu.Lock()
	defer f.mu.Unlock()
	_, queued := f.uplink.Due()
	return queued
}

// receivesOnFormer reports whether tiles come over the former connection only.
func (c *control) receivesOnFormer(now time.Time) bool {
	f, present := c.former.media, c.path.media()
	f.mu.Lock()
	defer f.mu.Unlock()
	return !present.downlink.Covers(f.downlink, now)
}

// retire ends the connection to the server that the session has moved from.
func (c *control) retire() {
	f := c.former
	if f == nil {
		return
	}
	c.former = nil
	for _, p := range c.publishers.list() {
		p.leave()
	}
	m := c.path.media()
	m.mu.Lock()
	m.uplink.Add(f.media.uplink)
	m.mu.Unlock()
	f.media.stop()
	if f.conn != nil {
		f.conn.Close()
	}
	c.requests.AbandonUntil(f.requests)
}
