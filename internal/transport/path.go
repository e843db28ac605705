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
// ICE. path is safe for concurrent use. Readers of the routes take no lock.
type path struct {
	// peer is the entry for the addresses in the routes of the endpoint's ports.
	peer     *Peer
	endpoint *Endpoint
	// conn is the connection of ICE, once ICE was started.
	conn atomic.Pointer[ice.Conn]
	// agents are the ICE agent's entries in the muxes of the ports.
	agents  portAgents
	consent consent
	rtt     roundTrip
	// route is the direct route, nil if media passes through ICE. second is the route of copies, nil if there is none.
	// A change of an address requires routing to be held.
	route, second atomic.Pointer[peerRoute]
	routing       sync.Mutex
	// ended is set by end. After that no route is set. routing guards it.
	ended bool
	// pairs is nil unless the remote peer reads all its candidate pairs.
	pairs atomic.Pointer[pairs]
}

// peerRoute is the address that a peer's packets are sent to, and the sending socket.
type peerRoute struct {
	// port receives from the address. path is the number of the path.
	port    *mediaPort
	path    uint8
	socket  *udp.Socket
	address netip.AddrPort
	// apart is set if the socket sends to the peer's host alone.
	apart bool
	// silent is set while the remote peer does not consent to receive (RFC 7675).
	silent bool
}

// pair returns the candidate pair of a route, an invalid pair if there is no route.
func (r *peerRoute) pair() pairAddress {
	if r == nil {
		return pairAddress{}
	}
	return pairAddress{r.port, r.address}
}

// selected sets the pair that ICE has selected. If both addresses are UDP addresses and the local one is not relayed,
// media bypasses ICE.
func (p *path) selected(local, remote ice.Candidate) {
	p.routing.Lock()
	defer p.routing.Unlock()
	if p.ended {
		return
	}
	var to pairAddress
	if len(p.endpoint.mediaPorts()) > 0 && local.NetworkType().IsUDP() && remote.NetworkType().IsUDP() &&
		local.Type() != ice.CandidateTypeRelay {
		port := p.endpoint.portOf(local)
		if port == nil {
			// The replacement has a candidate of its own.
			return
		}
		to = pairAddress{port, icemux.AddressOf(remote)}
	}
	if pairs := p.pairs.Load(); pairs != nil && to.valid() {
		number := to.port.path
		if !pairs.trusting {
			number, _ = pathOf(remote.Priority())
		}
		pairs.choose(to, number, time.Now())
	}
	p.reroute(to)
}

// end removes the routes. Media then passes through ICE until ICE is closed.
func (p *path) end() {
	p.routing.Lock()
	defer p.routing.Unlock()
	p.ended = true
	p.reroute(pairAddress{})
}

// reroute sets the pair that media is sent on. If the pair is invalid, media passes through ICE. A second route on the
// pair becomes the primary one. The caller holds the mutex. If other peers use the endpoint, a panic ends the process,
// because the readers of all peers use the routes.
func (p *path) reroute(to pairAddress) {
	if !p.endpoint.config.Initiates {
		defer panics.Shared()
	}
	if p.route.Load().pair() == to {
		return
	}
	var route *peerRoute
	second := p.second.Load()
	if to.valid() {
		p.consent.begin(to, time.Now())
		if a := p.agents.of(to.port); a != nil {
			p.rtt.begin(a.RoundTrip(to.remote))
		}
		if second.pair() == to {
			route, second = second, nil
		} else {
			route = p.newRoute(to)
		}
	} else {
		second = nil
	}
	p.set(route, second)
}

// newRoute returns a route on a pair. The caller holds the mutex.
func (p *path) newRoute(to pairAddress) *peerRoute {
	route := &peerRoute{port: to.port, path: to.port.path, address: to.remote}
	if pairs := p.pairs.Load(); pairs != nil {
		route.path = pairs.path(to)
	}
	route.socket = p.endpoint.neighbours.take(to.remote.Addr())
	if route.apart = route.socket != nil; !route.apart {
		route.socket = to.port.Sockets()[0]
	}
	return route
}

// set replaces the routes, and releases what only the former routes use. The caller holds the mutex.
func (p *path) set(route, second *peerRoute) {
	before, after := [...]*peerRoute{p.route.Load(), p.second.Load()}, [...]*peerRoute{route, second}
	has := func(routes [2]*peerRoute, pair pairAddress) bool {
		return routes[0].pair() == pair || routes[1].pair() == pair
	}
	for _, r := range before {
		if r != nil && !has(after, r.pair()) {
			r.port.routes.remove(p.peer, r.address)
		}
	}
	for _, r := range after {
		if r != nil && !has(before, r.pair()) {
			r.port.routes.add(p.peer, r.address)
		}
	}
	p.second.Store(second)
	p.route.Store(route)
	for _, r := range before {
		if r != nil && r.apart && !has(after, r.pair()) {
			p.endpoint.neighbours.release(r.address.Addr())
		}
	}
}

// receivedBy sets the socket of the route to the socket that receives from the route's address, unless the route's
// socket sends to the host alone. receivedBy returns the number of the path, and reports whether the route is the
// second one.
func (p *path) receivedBy(port *mediaPort, socket *udp.Socket, from netip.AddrPort) (number uint8, second bool) {
	if route := p.second.Load(); route != nil && route.port == port && route.address == from {
		return receivedOn(&p.second, route, socket), true
	}
	if route := p.route.Load(); route != nil && route.address == from && route.port == port {
		return receivedOn(&p.route, route, socket), false
	}
	return 0, false
}

func receivedOn(at *atomic.Pointer[peerRoute], route *peerRoute, socket *udp.Socket) (number uint8) {
	if !route.apart && route.socket != socket {
		moved := *route
		moved.socket = socket
		at.CompareAndSwap(route, &moved)
	}
	return route.path
}

// leads reports whether the primary route receives from an address at a port.
func (p *path) leads(port *mediaPort, from netip.AddrPort) bool {
	route := p.route.Load()
	return route != nil && route.port == port && route.address == from
}

// blocked reports whether packets would be lost on this host: the send buffer was full for a while, or the remote peer
// does not consent.
func (p *path) blocked(now time.Time) bool {
	route := p.route.Load()
	return route != nil && (route.silent || route.socket.Full(now))
}

// tend repeats a check that was not answered, stops media while the remote peer does not consent, and chooses the
// routes of a peer with several pairs. tend returns the buffer for reuse.
func (p *path) tend(now time.Time, buffer []byte) []byte {
	if pairs := p.pairs.Load(); pairs != nil {
		p.tendPairs(pairs, now)
	}
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

// answered records the response to a check on a pair. took is the round-trip time of the check, if the check was sent
// once.
func (p *path) answered(
	pair pairAddress, id icemux.TransactionID, response []byte, took time.Duration, now time.Time,
) {
	pairs := p.pairs.Load()
	if pairs != nil {
		if !pairs.authentic(response) {
			return
		}
		if pairs.answered(pair, took, now) && p.second.Load() == nil {
			p.endpoint.chooseSoon(p.peer)
		}
	}
	measured, there := p.consent.answered(pair, id, now)
	if !there {
		return
	}
	if pairs == nil {
		took = measured
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
