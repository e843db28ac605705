package transport

import (
	"net/netip"
	"sync"

	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/udp"
)

// neighbours has one sending socket for each host that is on link (see hostnet.IsNeighbour). The kernel keeps packets
// to a neighbour that does not answer for up to 3 s and 212,992 bytes (net.ipv4.neigh.default.unres_qlen_bytes), and
// counts them against the send buffer of their socket. The kernel's default send buffer is of the same size, so two
// receivers that vanish would fill the buffer of a shared socket. Peers behind a gateway share the receiving sockets:
// if the gateway vanishes, none of these peers can be reached.
//
// The price: runs for several neighbours take one system call each, while runs from one socket share a call (udp.Post).
type neighbours struct {
	port   *udp.Port
	config udp.SenderConfig

	mu    sync.Mutex
	hosts map[netip.Addr]*neighbour
}

// neighbour is the socket of one host. users counts the peers that send to the host.
type neighbour struct {
	socket *udp.Socket
	users  int
}

// take returns the socket for a host and counts one user. take returns nil if the host is no neighbour or the socket
// cannot be opened.
func (n *neighbours) take(host netip.Addr) *udp.Socket {
	if n.port == nil || !hostnet.IsNeighbour(host) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.hosts[host]
	if known == nil {
		socket, err := n.port.OpenSender(n.config)
		if err != nil {
			return nil
		}
		if n.hosts == nil {
			n.hosts = make(map[netip.Addr]*neighbour)
		}
		known = &neighbour{socket: socket}
		n.hosts[host] = known
	}
	known.users++
	return known.socket
}

// release ends one use of a socket that take returned. The last user closes the socket.
func (n *neighbours) release(host netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.hosts[host]
	if known.users--; known.users == 0 {
		delete(n.hosts, host)
		_ = n.port.CloseSender(known.socket)
	}
}
