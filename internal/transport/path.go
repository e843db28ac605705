package transport

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/transport/icemux"
	"github.com/volsfu/volsfu/internal/udp"
)

// path is the way of packets to the remote peer: directly to the address of the selected candidate pair, or through
// ICE. path is safe for concurrent use. Readers of the route take no lock.
type path struct {
	// peer is the entry for the address in the endpoint's routes.
	peer     *Peer
	endpoint *Endpoint
	// conn is the connection of ICE, once ICE was started.
	conn atomic.Pointer[ice.Conn]
	// agent is the ICE agent on the media port, nil before it gathers.
	agent   atomic.Pointer[icemux.Agent]
	consent consent
	rtt     roundTrip
	// route is the direct route, nil if media passes through ICE. A change of the address requires routing to be held.
	route   atomic.Pointer[peerRoute]
	routing sync.Mutex
	// ended is set by end. After that no route is set. routing guards it.
	ended bool
}

// peerRoute is the address that a peer's packets are sent to, and the sending socket.
type peerRoute struct {
	socket  *udp.Socket
	address netip.AddrPort
	// apart is set if the socket sends to the peer's host alone.
	apart bool
	// silent is set while the remote peer does not consent to receive (RFC 7675).
	silent bool
}

// selected sets the pair that ICE has selected. If both addresses are UDP addresses, media bypasses ICE.
func (p *path) selected(local, remote ice.Candidate) {
	p.routing.Lock()
	defer p.routing.Unlock()
	if p.ended {
		return
	}
	var to netip.AddrPort
	if p.endpoint.port != nil && local.NetworkType().IsUDP() && remote.NetworkType().IsUDP() {
		to = icemux.AddressOf(remote)
	}
	p.reroute(to)
}

// end removes the route. Media then passes through ICE until ICE is closed.
func (p *path) end() {
	p.routing.Lock()
	defer p.routing.Unlock()
	p.ended = true
	p.reroute(netip.AddrPort{})
}

// reroute sets the address that media is sent to. If the address is invalid, media passes through ICE. The caller holds
// the mutex. If other peers use the endpoint, a panic ends the process, because the readers of all peers use the
// routes.
func (p *path) reroute(to netip.AddrPort) {
	if !p.endpoint.config.Initiates {
		defer panics.Shared()
	}
	var from peerRoute
	if old := p.route.Load(); old != nil {
		from = *old
	}
	if from.address == to {
		return
	}
	var route *peerRoute
	if to.IsValid() {
		p.consent.begin(to, time.Now())
		if a := p.agent.Load(); a != nil {
			p.rtt.begin(a.RoundTrip(to))
		}
		route = &peerRoute{address: to, socket: p.endpoint.neighbours.take(to.Addr())}
		if route.apart = route.socket != nil; !route.apart {
			route.socket = p.endpoint.port.Sockets()[0]
		}
	}
	p.endpoint.routes.move(p.peer, from.address, to)
	p.route.Store(route)
	if from.apart {
		p.endpoint.neighbours.release(from.address.Addr())
	}
}

// receivedBy sets the socket of the route to the socket that receives from the route's address, unless the route's
// socket sends to the host alone.
func (p *path) receivedBy(socket *udp.Socket, from netip.AddrPort) {
	route := p.route.Load()
	if route != nil && !route.apart && route.socket != socket && route.address == from {
		moved := *route
		moved.socket = socket
		p.route.CompareAndSwap(route, &moved)
	}
}

// blocked reports whether packets would be lost on this host: the send buffer was full for a while, or the remote peer
// does not consent.
func (p *path) blocked(now time.Time) bool {
	route := p.route.Load()
	return route != nil && (route.silent || route.socket.Full(now))
}

// tend repeats a check that was not answered, and stops media while the remote peer does not consent. tend returns the
// buffer for reuse.
func (p *path) tend(now time.Time, buffer []byte) []byte {
	fresh, check := p.consent.step(now, buffer)
	route := p.route.Load()
	if route == nil {
		return buffer
	}
	if route.silent == fresh {
		p.setSilent(route, !fresh)
	}
	if len(check) > 0 {
		_ = route.socket.Send([]udp.Message{{Peer: route.address, Data: check, Segment: len(check)}})
		return check
	}
	return buffer
}

// answered records that the remote peer has answered a check from an address.
func (p *path) answered(from netip.AddrPort, id icemux.TransactionID, now time.Time) {
	took, there := p.consent.answered(from, id, now)
	if !there {
		return
	}
	p.rtt.add(took)
	if route := p.route.Load(); route != nil && route.silent {
		p.setSilent(route, false)
	}
}

// setSilent stops or resumes media on a route, unless the peer has another route by now.
func (p *path) setSilent(route *peerRoute, silent bool) {
	changed := *route
	changed.silent = silent
	p.route.CompareAndSwap(route, &changed)
}

// sendThrough sends the datagrams of a run through ICE, one by one. Before ICE is started, datagrams are lost.
func (p *path) sendThrough(message udp.Message) {
	conn := p.conn.Load()
	if conn == nil {
		return
	}
	for datagram := range message.Datagrams() {
		if _, err := conn.Write(datagram); err != nil {
			return
		}
	}
}
