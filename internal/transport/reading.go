package transport

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport/icemux"
	"github.com/volsfu/volsfu/internal/transport/secure"
	"github.com/volsfu/volsfu/internal/udp"
)

// read is the goroutine of one socket of a port. Datagrams from the address of a peer go to that peer, all others to
// ICE.
func (e *Endpoint) read(port *mediaPort, socket *udp.Socket) {
	inbox := udp.NewInbox()
	// touched are the peers with packets in the present batch.
	var touched []*Peer
	for {
		if err := socket.Receive(inbox); err != nil {
			e.ended(err)
			return
		}
		now := time.Now()
		for _, departure := range inbox.Departures() {
			port.departed(&departure)
		}
		for _, message := range inbox.Messages() {
			peer := port.routes.peer(message.Peer)
			if peer == nil {
				port.mux.Deliver(message, now)
				continue
			}
			peer.receiveRun(message, port, socket, now)
			if !slices.Contains(touched, peer) {
				touched = append(touched, peer)
			}
		}
		flush(touched)
		clear(touched)
		touched = touched[:0]
	}
}

// tend is the goroutine that checks named addresses, rejects floods, checks the consent of the endpoint's peers,
// chooses their routes, and watches the interfaces.
func (e *Endpoint) tend() {
	ticker := time.NewTicker(consentInterval)
	defer ticker.Stop()
	var buffer []byte
	for {
		select {
		case now := <-ticker.C:
			for _, port := range e.mediaPorts() {
				port.mux.Step(now)
				for address, peer := range port.routes.all {
					if peer.path.leads(port, address) {
						buffer = peer.path.tend(now, buffer[:0])
					}
				}
			}
			if e.interfaces != nil {
				e.interfaces.watch(now)
			}
		case peer := <-e.recovered:
			if pairs := peer.path.pairs.Load(); pairs != nil {
				peer.path.chooseRoutes(pairs, time.Now())
			}
		case <-e.closed:
			return
		}
	}
}

// chooseSoon makes tend choose the routes of a peer one of whose pairs works again, before the next step. If too many
// peers wait, the next step chooses. chooseSoon does not wait, because its caller holds the mutex of a mux.
func (e *Endpoint) chooseSoon(peer *Peer) {
	select {
	case e.recovered <- peer:
	default:
	}
}

// receiveRun processes datagrams from one of the peer's addresses. Datagrams that are not media go to receiveControl.
func (p *Peer) receiveRun(message udp.Message, port *mediaPort, socket *udp.Socket, now time.Time) {
	number, second := p.path.receivedBy(port, socket, message.Peer)
	p.incoming.mu.Lock()
	defer p.incoming.mu.Unlock()
	p.incoming.info, p.incoming.second = PacketInfo{At: now, ECN: message.ECN, Path: number}, second
	p.incoming.info.Kernel, p.incoming.info.Hardware = stampTimes(message.Arrived)
	for datagram := range message.Datagrams() {
		if !isMedia(datagram) {
			p.receiveControl(datagram, port.mux, message.Peer, now)
			continue
		}
		p.incoming.receive(datagram)
	}
}

// receiveControl processes a datagram that is not media, from an address that media is sent to. DTLS records bypass
// ICE.
func (p *Peer) receiveControl(datagram []byte, mux *icemux.Mux, from netip.AddrPort, now time.Time) {
	if records := p.records.Load(); records != nil && secure.IsRecord(datagram) {
		if !records.Admits(now) {
			mux.Refuse(datagram, from)
		} else if mux.AdmitsRecords(from.Addr(), now) {
			records.Write(datagram)
		}
		return
	}
	mux.DeliverOne(datagram, from, now)
}

// flush calls the sinks of the peers at the end of a batch.
func flush(touched []*Peer) {
	if len(touched) > 1 {
		for _, peer := range touched {
			peer.sink.Signal()
		}
	}
	for _, peer := range touched {
		peer.sink.Flush()
	}
}

// ended reports the first error that ends the reading of a socket. The error of a closed socket is not reported.
func (e *Endpoint) ended(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	select {
	case e.failed <- fmt.Errorf("media socket: %w", err):
	default:
	}
}

// isMedia reports whether a datagram is protected RTP or RTCP, and not STUN or DTLS, by the first byte (RFC 7983).
func isMedia(datagram []byte) bool {
	return len(datagram) > 0 && datagram[0] >= 128 && datagram[0] <= 191
}

// isRTCP reports whether a packet is RTCP, and not RTP, by the packet type (RFC 5761 section 4).
func isRTCP(datagram []byte) bool {
	return len(datagram) > 1 && datagram[1] >= 192 && datagram[1] <= 223
}

// routes maps the addresses of one port to peers. Several goroutines read the map for every run of datagrams, without a
// lock. The map changes when the routes of a peer change. A change copies one of the parts, which are chosen by port.
type routes struct {
	parts [routeParts]routePart
}

// routeParts bounds the cost of a change: among 64,000 peers, as many as one address has ports, a change copies 1,000
// entries.
const routeParts = 64

type routePart struct {
	mu    sync.Mutex
	peers atomic.Pointer[map[netip.AddrPort]*Peer]
}

func (r *routes) part(address netip.AddrPort) *routePart { return &r.parts[address.Port()%routeParts] }

// peer returns the peer at an address, nil if there is none.
func (r *routes) peer(address netip.AddrPort) *Peer {
	if peers := r.part(address).peers.Load(); peers != nil {
		return (*peers)[address]
	}
	return nil
}

// all iterates over the addresses with their peers.
func (r *routes) all(yield func(netip.AddrPort, *Peer) bool) {
	for i := range r.parts {
		peers := r.parts[i].peers.Load()
		if peers == nil {
			continue
		}
		for address, peer := range *peers {
			if !yield(address, peer) {
				return
			}
		}
	}
}

// Socket implements icemux.Routes.
func (r *routes) Socket(address netip.AddrPort) *udp.Socket {
	if route := r.route(address); route != nil {
		return route.socket
	}
	return nil
}

// Silent implements icemux.Routes.
func (r *routes) Silent(address netip.AddrPort) bool {
	route := r.route(address)
	return route != nil && route.silent
}

// route returns the route of the peer at an address, nil if the peer has another route by now.
func (r *routes) route(address netip.AddrPort) *peerRoute {
	if peer := r.peer(address); peer != nil {
		for _, route := range []*peerRoute{peer.path.route.Load(), peer.path.second.Load()} {
			if route != nil && route.address == address && &route.port.routes == r {
				return route
			}
		}
	}
	return nil
}

// Ports implements icemux.Routes.
func (r *routes) Ports(source netip.Prefix) (ports []uint16) {
	for address := range r.all {
		if source.Contains(address.Addr().WithZone("")) {
			ports = append(ports, address.Port())
		}
	}
	return ports
}

// add adds an address of a peer, which replaces another peer at the address.
func (r *routes) add(p *Peer, address netip.AddrPort) {
	r.part(address).change(func(peers map[netip.AddrPort]*Peer) { peers[address] = p })
}

// remove removes an address of a peer, unless another peer has the address by now.
func (r *routes) remove(p *Peer, address netip.AddrPort) {
	r.part(address).change(func(peers map[netip.AddrPort]*Peer) {
		if peers[address] == p {
			delete(peers, address)
		}
	})
}

// change replaces the part by a changed copy.
func (r *routePart) change(f func(map[netip.AddrPort]*Peer)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	peers := make(map[netip.AddrPort]*Peer)
	if old := r.peers.Load(); old != nil {
		maps.Copy(peers, *old)
	}
	f(peers)
	r.peers.Store(&peers)
}
