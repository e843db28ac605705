package transport

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/pion/ice/v4"

	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/transport/icemux"
	"github.com/volsfu/volsfu/internal/transport/secure"
	"github.com/volsfu/volsfu/internal/udp"
)

// mediaPort is one UDP port of an endpoint, with the ICE mux of the port and the peers by remote address. A server has
// one media port. A client has one, or one for each of its interfaces.
type mediaPort struct {
	*udp.Port
	mux    *icemux.Mux
	routes routes
	// path is the number of the paths through this port, if this side numbers the paths (PacketInfo.Path).
	path uint8
}

// start makes the mux of a port and starts the goroutines that read the port's sockets.
func (e *Endpoint) start(port *udp.Port, path uint8) *mediaPort {
	m := &mediaPort{Port: port, path: path}
	m.mux = icemux.New(port, &m.routes, icemux.Config{
		PublicIPs: e.config.PublicIPs, PrivateCandidates: e.config.PrivateCandidates, Unbounded: e.config.Initiates,
		Records: secure.SourceRate,
	})
	for _, socket := range port.Sockets() {
		// A socket without timestamps has packets without them.
		socket.TakeStamps(true)
		e.readers.Go(func() { e.try(func() { e.read(m, socket) }) })
	}
	return m
}

// close closes the port. The goroutines that read the port end.
func (m *mediaPort) close() error {
	err := m.mux.Close()
	if closing := m.Port.Close(); err == nil {
		err = closing
	}
	return err
}

// mediaPorts returns the endpoint's ports, none if the endpoint dials. The slice does not change. If an interface
// returns, the endpoint replaces the slice.
func (e *Endpoint) mediaPorts() []*mediaPort {
	if ports := e.ports.Load(); ports != nil {
		return *ports
	}
	return nil
}

// portOf returns the port of a local candidate, nil if the port was replaced.
func (e *Endpoint) portOf(local ice.Candidate) *mediaPort {
	ports := e.mediaPorts()
	if !e.several {
		return ports[0]
	}
	address := icemux.AddressOf(local)
	for _, port := range ports {
		if port.Address() == address {
			return port
		}
	}
	return nil
}

// interfacePorts are the ports of a client that has one for each of its interfaces. The goroutine of Endpoint.tend
// calls watch. The other methods are safe for concurrent use.
type interfacePorts struct {
	endpoint *Endpoint
	network  hostNetwork
	config   udp.Config
	ipv6     bool
	names    []string
	// bound are the interfaces as they were when their ports were opened. lookedAt is the time of the last look.
	bound    []hostnet.Interface
	lookedAt time.Time

	mu    sync.Mutex
	peers []*Peer
}

// hostNetwork is the part of this host that interfacePorts needs.
type hostNetwork struct {
	find   func(name string, ipv6 bool) (hostnet.Interface, error)
	listen func(udp.Config) (*udp.Port, error)
}

// lookInterval is the time between two looks at the interfaces. A returned interface carries packets again after this
// time and a round trip.
const lookInterval = time.Second

// listenEach opens one port on each of the configured interfaces.
func listenEach(config Config, network hostNetwork) (*Endpoint, error) {
	address, _ := netip.ParseAddr(config.Address)
	i := &interfacePorts{
		network: network, config: config.sockets(netip.AddrPortFrom(address, 0), 1), ipv6: address.Is6(),
		names: config.Interfaces,
	}
	var ports []*udp.Port
	for _, name := range i.names {
		port, bound, err := i.open(name)
		if err != nil {
			closePorts(ports)
			return nil, err
		}
		ports, i.bound = append(ports, port), append(i.bound, bound)
	}
	e, err := newEndpoint(config, i, ports...)
	if err != nil {
		closePorts(ports)
	}
	return e, err
}

func closePorts(ports []*udp.Port) {
	for _, port := range ports {
		_ = port.Close()
	}
}

// open opens a port on an interface. The error names the interface.
func (i *interfacePorts) open(name string) (*udp.Port, hostnet.Interface, error) {
	found, err := i.network.find(name, i.ipv6)
	if err != nil {
		return nil, found, err
	}
	config := i.config
	config.Address, config.Device = netip.AddrPortFrom(found.Address, 0), name
	port, err := i.network.listen(config)
	if err != nil {
		return nil, found, fmt.Errorf("listen on interface %q: %w", name, err)
	}
	return port, found, nil
}

// add adds a peer, which receives the ports of interfaces that return. remove removes the peer.
func (i *interfacePorts) add(peer *Peer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.peers = append(i.peers, peer)
}

func (i *interfacePorts) remove(peer *Peer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.peers = slices.DeleteFunc(i.peers, func(p *Peer) bool { return p == peer })
}

// watch opens a new port on each interface that has another address than its port, or that was removed and added again.
// An interface that is gone keeps its port, through which nothing passes.
func (i *interfacePorts) watch(now time.Time) {
	if now.Sub(i.lookedAt) < lookInterval {
		return
	}
	i.lookedAt = now
	for n, name := range i.names {
		found, err := i.network.find(name, i.ipv6)
		if err != nil || found == i.bound[n] {
			continue
		}
		port, bound, err := i.open(name)
		if err != nil {
			// The interface has gone again. The next look tries again.
			continue
		}
		i.bound[n] = bound
		i.replace(n, port)
	}
}

// replace replaces a port, and adds the new port to the peers' ICE agents.
func (i *interfacePorts) replace(number int, port *udp.Port) {
	e := i.endpoint
	ports := slices.Clone(e.mediaPorts())
	before := ports[number]
	ports[number] = e.start(port, before.path)
	e.ports.Store(&ports)
	i.mu.Lock()
	peers := slices.Clone(i.peers)
	i.mu.Unlock()
	for _, peer := range peers {
		peer.agent.addReplacement(ports[number])
		peer.path.leave(before, ports[number])
	}
	_ = before.close()
}

// candidatePorts implements ice.UDPMux for the agents of an endpoint with several ports. It has no addresses: the agent
// gathers nothing, and receives a candidate for each port (iceAgent.addPort). Pion would give the candidates of all
// ports the same priority.
type candidatePorts struct{ endpoint *Endpoint }

// GetConn implements ice.UDPMux.
func (candidatePorts) GetConn(string, net.Addr) (net.PacketConn, error) { return nil, net.ErrClosed }

// RemoveConnByUfrag implements ice.UDPMux.
func (c candidatePorts) RemoveConnByUfrag(ufrag string) {
	for _, port := range c.endpoint.mediaPorts() {
		port.mux.RemoveConnByUfrag(ufrag)
	}
}

// GetListenAddresses implements ice.UDPMux.
func (candidatePorts) GetListenAddresses() []net.Addr { return nil }

// Close implements ice.UDPMux. The endpoint closes the ports.
func (candidatePorts) Close() error { return nil }
