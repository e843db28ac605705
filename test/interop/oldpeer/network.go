package oldpeer

import (
	"net"
	"sync/atomic"

	"github.com/pion/transport/v5"
	"github.com/pion/transport/v5/stdnet"
)

// network is the network of one peer. Once it is silent its sockets swallow what is sent, and hand out nothing: the process is gone, and its
// kernel says no goodbye by UDP.
type network struct {
	transport.Net
	silent *atomic.Bool
}

// newNetwork wraps a network, the system's where it is nil.
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

// receiveBuffer is what a socket may hold while a loaded machine has no time for its reader. The original takes the system's default, which is a few frames.
const receiveBuffer = 4 << 20

// ListenUDP opens a socket that falls silent with the peer.
func (n *network) ListenUDP(network string, address *net.UDPAddr) (transport.UDPConn, error) {
	conn, err := n.Net.ListenUDP(network, address)
	if err != nil {
		return nil, err
	}
	// Where the system allows less it gives what it allows.
	_ = conn.SetReadBuffer(receiveBuffer)
	return &socket{conn, n.silent}, nil
}

// socket is one UDP socket of a peer.
type socket struct {
	transport.UDPConn
	silent *atomic.Bool
}

// WriteTo loses what is written once the peer is silent.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	if s.silent.Load() {
		return len(b), nil
	}
	return s.UDPConn.WriteTo(b, to)
}

// ReadFrom passes over what arrives once the peer is silent.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := s.UDPConn.ReadFrom(b)
		if err != nil || !s.silent.Load() {
			return n, from, err
		}
	}
}
