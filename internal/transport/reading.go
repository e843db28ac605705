package transport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

// read is the goroutine of one socket. What is protected media of a peer whose address is known goes to that peer, everything else to ICE.
func (e *Endpoint) read(socket *udp.Socket) {
	inbox := udp.NewInbox()
	// touched are the peers that the batch at hand had packets for.
	var touched []*Peer
	for {
		if err := socket.Receive(inbox); err != nil {
			e.ended(err)
			return
		}
		now := time.Now()
		for _, departure := range inbox.Departures() {
			e.departed(&departure)
		}
		for _, message := range inbox.Messages() {
			peer := e.routes.peer(message.Peer)
			if peer == nil {
				e.control.deliver(message)
				continue
			}
			peer.receiveRun(message, socket, now)
			if !slices.Contains(touched, peer) {
				touched = append(touched, peer)
			}
		}
		flush(touched)
		clear(touched)
		touched = touched[:0]
	}
}

// flush tells the sinks of peers that their packets of one batch are complete.
func flush(touched []*Peer) {
	if len(touched) > 1 {
		for _, peer := range touched {
			if peer.batches != nil {
				peer.batches.Signal()
			}
		}
	}
	for _, peer := range touched {
		peer.sink.Flush()
	}
}

// ended tells the first error that ends the reading of a socket but its closing.
func (e *Endpoint) ended(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	select {
	case e.failed <- fmt.Errorf("media socket: %w", err):
	default:
	}
}

// isMedia tells protected RTP and RTCP from STUN and DTLS by the first byte (RFC 7983).
func isMedia(datagram []byte) bool {
	return len(datagram) > 0 && datagram[0] >= 128 && datagram[0] <= 191
}

// isRTCP tells RTCP from RTP by the packet type (RFC 5761 section 4).
func isRTCP(datagram []byte) bool {
	return len(datagram) > 1 && datagram[1] >= 192 && datagram[1] <= 223
}

// routes says which peer an address belongs to. It is read for every run of datagrams that comes in, by several goroutines, and changes when
// ICE selects a candidate pair: readers take no lock, and who changes it makes a copy.
type routes struct {
	mu    sync.Mutex
	peers atomic.Pointer[map[netip.AddrPort]*Peer]
}

// peer finds the peer at an address, nil where ICE has found none.
func (r *routes) peer(address netip.AddrPort) *Peer {
	if peers := r.peers.Load(); peers != nil {
		return (*peers)[address]
	}
	return nil
}

// move gives a peer another address, and none if that is not valid.
func (r *routes) move(p *Peer, from, to netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	peers := make(map[netip.AddrPort]*Peer)
	if old := r.peers.Load(); old != nil {
		for address, peer := range *old {
			if address != from || peer != p {
				peers[address] = peer
			}
		}
	}
	if to.IsValid() {
		peers[to] = p
	}
	r.peers.Store(&peers)
}
