package client

import (
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/uplink"
	"github.com/volsfu/volsfu/pkg/payload"
)

// restartDistance: a number this far below the newest starts the numbers again. It is ten seconds at 100 frames per
// second, as in receivers.
const restartDistance = 1000

// carrier returns the way of the present frames.
func (p *Publisher) carrier() *way {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.present
}

// on returns the way over a server's connection, nil if there is none. The caller holds the lock.
func (p *Publisher) on(m *media) *way {
	for _, w := range []*way{p.present, p.next, p.former} {
		if w != nil && w.media == m {
			return w
		}
	}
	return nil
}

// follow prepares the way over the connection to the server that the session moves to.
func (p *Publisher) follow(m *media) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.on(m) == nil {
		p.next = &way{media: m, sent: uplink.NewPublicationAfter(p.present.sent)}
	}
}

// wayOfFrame returns the way of a frame of payload v1.
func (p *Publisher) wayOfFrame(number uint32, now time.Time) *way {
	m := p.all.path.media()
	m.mu.Lock()
	order := payload.ExtendFrame(p.newest, number)
	m.mu.Unlock()
	return p.wayOf(order, now)
}

// wayOf returns the way of a frame. order increases from frame to frame, and the tiles and qualities of one frame have
// the same order. The first frame above all before takes the next way, if that is ready.
func (p *Publisher) wayOf(order int64, now time.Time) *way {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	p.written = now
	switch {
	case p.former != nil && order <= p.boundary && order > p.boundary-restartDistance && p.former.media.connected:
		return p.former
	case p.next != nil && order != p.newest && (p.ready() || !p.present.media.connected):
		p.advance()
	}
	if order > p.newest || order < p.newest-restartDistance {
		p.newest = order
	}
	return p.present
}

// ready reports whether the next way has all tracks of the present one. The caller holds the lock.
func (p *Publisher) ready() bool {
	if !p.next.media.connected {
		return false
	}
	for track := range p.description.TrackCount() {
		if p.present.sent.Negotiated(track) && !p.next.sent.Negotiated(track) {
			return false
		}
	}
	return true
}

// advance makes the next way the present one. The caller holds the lock.
func (p *Publisher) advance() {
	p.former, p.present, p.next, p.boundary = p.present, p.next, nil, p.newest
	if w := p.present.wanted; w != nil {
		p.all.events.add(*w)
	}
}

// moves reports whether frames still take the connection that the session leaves. A publication without frames for a
// second waits for none.
func (p *Publisher) moves(now time.Time) bool {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.next != nil && now.Sub(p.written) < time.Second
}

// leave removes the way over the connection that the session has left.
func (p *Publisher) leave() {
	m := p.all.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.next != nil {
		p.advance()
	}
	p.former = nil
}
