package vr2gather

import (
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// If the host or the network of a peer fails, the peer sends no goodbye, and its number stays taken until three pings
// are unanswered. VR2Gather restarts peers at once under the same number, and an unmodified peer does not retry.
// Therefore the server asks the peer with the number for a sign of life before it refuses a new peer.

// challengeTime is the time that a peer has for a sign of life. The round trip is below one second, and a peer that is
// busy with an offer answers within another second.
const challengeTime = 2 * time.Second

// place is a client number in a room. One peer at a time has a place.
type place struct {
	room   string
	client uint32
}

// presence has the present peer of each place. presence is safe for concurrent use.
type presence struct {
	mu      sync.Mutex
	clients map[place]*client
}

func newPresence() *presence {
	return &presence{clients: make(map[place]*client)}
}

func (p *presence) set(place place, c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[place] = c
}

// clear frees the place of c, unless another peer has the place already.
func (p *presence) clear(place place, c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients[place] == c {
		delete(p.clients, place)
	}
}

func (p *presence) of(place place) *client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients[place]
}

// signs are the signs of life of a peer. They are safe for concurrent use.
type signs struct {
	mu sync.Mutex
	// next is closed at the next sign.
	next chan struct{}
}

func newSigns() *signs { return &signs{next: make(chan struct{})} }

// give records a sign of life.
func (s *signs) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.next)
	s.next = make(chan struct{})
}

// await returns a channel that is closed at the next sign.
func (s *signs) await() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// join joins the room on behalf of the peer. If its number is taken by a peer that does not answer, join ends the
// connection of that peer first. If the peer with the number has left since the refusal, join tries again.
func (c *client) join(request sfu.JoinRequest) (signalling.Session, *signal.Error) {
	node, presence := c.server.locator.Locate(&request), c.server.presence
	session, refused := node.Join(request)
	if refused != nil && refused.Code == signal.CodeIdentityTaken {
		present := presence.of(c.place)
		if present != nil && !present.answers() {
			present.disconnect(c)
			present = nil
		}
		if present == nil {
			session, refused = node.Join(request)
		}
	}
	if refused == nil {
		presence.set(c.place, c)
	}
	return session, refused
}

// disconnect ends the connection of a peer that does not answer and waits until the peer has left the room.
func (c *client) disconnect(to *client) {
	select {
	case <-c.gone:
	default:
		c.log.Warn("VR2Gather peer does not answer and is replaced by a new peer with its number",
			zap.Stringer("newcomer", to.conn.RemoteAddr()))
		_ = c.conn.NetConn().Close()
		<-c.gone
	}
}

// answers asks the peer for a sign of life and reports whether the peer is still connected.
func (c *client) answers() bool {
	sign := c.signs.await()
	timer := time.NewTimer(challengeTime)
	defer timer.Stop()
	// The write waits for the present write, which may take long if the peer is gone.
	go func() { _ = c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(challengeTime)) }()
	return answered(sign, c.gone, timer.C)
}

// answered waits for a sign of life, the end of the connection or the end of the time. A sign that has arrived counts
// even if the time is over. After the end of the connection no sign counts.
func answered(sign, gone <-chan struct{}, late <-chan time.Time) bool {
	select {
	case <-sign:
	case <-gone:
	case <-late:
	}
	return happened(sign) && !happened(gone)
}

// happened reports whether an event channel is closed.
func happened(what <-chan struct{}) bool {
	select {
	case <-what:
		return true
	default:
		return false
	}
}
