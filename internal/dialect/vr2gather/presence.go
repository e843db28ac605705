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

// A peer whose host or network has gone says no goodbye: its number stays taken until three pings are unanswered.
// Peers are started again at once, under the same number, and the one that ships does not try twice. So who has the
// number is asked whether it is still there before anybody is refused for it.

// challengeTime is how long a peer may take to answer that. The round trip to it is below a second, and a peer that
// is busy with an offer answers within another.
const challengeTime = 2 * time.Second

// place is what one peer at a time has.
type place struct {
	room   string
	client uint32
}

// presence knows who has which place. It is safe for concurrent use.
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

// clear frees a place, unless somebody else has it already.
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

// give is a sign of life.
func (s *signs) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.next)
	s.next = make(chan struct{})
}

// await is closed with the next sign.
func (s *signs) await() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// join joins for the peer. Where its number is taken by a peer that does not answer any more, that one's connection
// is ended first. Where nobody is there to be asked, who had the number may have gone since it was found taken.
func (c *client) join(request sfu.JoinRequest) (signalling.Session, *signal.Error) {
	node, presence := c.server.locator.Locate(&request), c.server.presence
	session, refused := node.Join(request)
	if refused != nil && refused.Code == signal.CodeIdentityTaken {
		present := presence.of(c.place)
		if present != nil && !present.answers() {
			present.giveWay(c)
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

// giveWay ends the connection of a peer that does not answer, and waits until it has left the room. One that has gone
// meanwhile needs no ending.
func (c *client) giveWay(to *client) {
	select {
	case <-c.gone:
	default:
		c.log.Warn("VR2Gather peer does not answer, and gives way to one with its number",
			zap.Stringer("newcomer", to.conn.RemoteAddr()))
		_ = c.conn.NetConn().Close()
		<-c.gone
	}
}

// answers asks a peer whether it is still there. One that has just gone is not, whatever it said before.
func (c *client) answers() bool {
	sign := c.signs.await()
	timer := time.NewTimer(challengeTime)
	defer timer.Stop()
	// Writing waits until what is being written is, which may take long towards a peer that is gone.
	go func() { _ = c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(challengeTime)) }()
	return answered(sign, c.gone, timer.C)
}

// answered waits for a sign of life, for the end or for the time to be over. A sign that has come by then counts
// though the time is over, and nothing does after the end.
func answered(sign, gone <-chan struct{}, late <-chan time.Time) bool {
	select {
	case <-sign:
	case <-gone:
	case <-late:
	}
	return happened(sign) && !happened(gone)
}

// happened reports whether a channel is closed that is closed when something happens.
func happened(what <-chan struct{}) bool {
	select {
	case <-what:
		return true
	default:
		return false
	}
}
