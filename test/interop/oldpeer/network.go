package oldpeer

import (
	"net"
	"sync/atomic"

	"github.com/pion/transport/v5"
	"github.com/pion/transport/v5/stdnet"
)

// network is the network of one peer. Once the network is silent, the sockets discard sent data and return no data: the
// process has ended, and the kernel sends nothing by UDP.
type network struct {
	transport.Net
	silent *atomic.Bool
}

// newNetwork wraps a network, by default the system's.
func newNetwork(under transport.Net) (*network, error) {
	if under == nil {
		system, err := stdnet.NewNet()
		if err != nil {
			return nil, err
		}
		under = system
	}
	return &network{under, new(atomic.Bool)}, nil
}

// receiveBuffer is the size of a socket's receive buffer, for when a busy machine delays the reader. The original uses
// the system's default, which holds a few frames.
const receiveBuffer = 4 << 20

// ListenUDP opens a socket that becomes silent with the peer.
func (n *network) ListenUDP(network string, address *net.UDPAddr) (transport.UDPConn, error) {
	conn, err := n.Net.ListenUDP(network, address)
	if err != nil {
		return nil, err
	}
	// The system may limit the size.
	_ = conn.SetReadBuffer(receiveBuffer)
	return &socket{conn, n.silent}, nil
}

// socket is one UDP socket of a peer.
type socket struct {
	transport.UDPConn
	silent *atomic.Bool
}

// WriteTo discards data once the peer is silent.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	if s.silent.Load() {
		return len(b), nil
	}
	return s.UDPConn.WriteTo(b, to)
}

// ReadFrom ignores data that arrives once the peer is silent.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := s.UDPConn.ReadFrom(b)
		if err != nil || !s.silent.Load() {
			return n, from, err
		}
	}
}
