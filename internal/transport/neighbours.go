package transport

import (
	"net/netip"
	"sync"

	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/udp"
)

// neighbours gives each host that is on link (see hostnet.IsNeighbour) a socket that sends to this host alone. The
// kernel keeps packets to a neighbour that does not answer for up to 3 s and 212,992 bytes
// (net.ipv4.neigh.default.unres_qlen_bytes), and counts them against the send buffer of their socket. With the kernel's
// default of as much for a send buffer, two receivers that vanish would take all of a socket's. Peers behind a gateway
// share the sockets that receive: with the gateway all of them are gone.
//
// What it costs: runs for several neighbours leave by one system call each, where others share one (udp.Post).
type neighbours struct {
	port   *udp.Port
	config udp.SenderConfig

	mu    sync.Mutex
	hosts map[netip.Addr]*neighbour
}

// neighbour is a host's socket. users counts the peers that send to the host.
type neighbour struct {
	socket *udp.Socket
	users  int
}

// take gives a peer the socket of its host. It is nil if the host is no neighbour, or there is no such socket.
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

// release gives up what take has given. The last peer of a host takes the socket with it.
func (n *neighbours) release(host netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.hosts[host]
	if known.users--; known.users == 0 {
		delete(n.hosts, host)
		_ = n.port.CloseSender(known.socket)
	}
}
