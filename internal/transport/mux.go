package transport

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/udp"
)

// What one participant and one address may send of what is not media of a known peer, in datagrams per second.
var (
	// agentRate bounds STUN messages: ICE checks a pair every 2 s once it is selected. While it connects, a browser sends one
	// check every 50 ms and repeats DTLS flights, and Pion's agent sends one to each of our addresses every checkInterval.
	agentRate = ratelimit.Rate{PerSecond: 100, Burst: 256}
	// dataRate bounds other datagrams: DTLS flights, and media of a peer whose address has changed until ICE selects the new
	// one.
	dataRate = ratelimit.Rate{PerSecond: 2000, Burst: 512}
	// sourceRate bounds those of one address: 64 clients behind one NAT that all join within a second. It counts only
	// datagrams that are for an agent and within the agent's own bounds.
	sourceRate = ratelimit.Rate{PerSecond: 2000, Burst: 4000}
	// targetRate bounds the checks of all agents to one address that was only named, so that many participants together
	// cannot aim more at a third party than one may. 64 clients behind one NAT that join within a second are each sent
	// some three there until their own checks come.
	targetRate = ratelimit.Rate{PerSecond: 50, Burst: 400}
	// sourceRecordRate bounds the datagrams with DTLS records that come from one address, for all its peers together: four
	// times what one peer may send. To decrypt them all takes some 20 % of a core.
	sourceRecordRate = ratelimit.Rate{PerSecond: 4 * recordRate, Burst: 4 * recordBurst}
)

// inboxDatagrams is how many datagrams wait for an agent in each address family. With receiveBytes each, an agent that
// does not read holds 256 KiB.
const inboxDatagrams = 128

// iceMux is the media port as ICE agents see it. It gives each agent the datagrams that are for it, within bounds, and
// sends what agents send. It implements ice.UDPMux; Pion's own mux queues without bounds, and gives an address to
// whichever agent has sent to it last.
//
// A request is for the agent that its USERNAME names, a response for the agent that has sent the check, and anything else
// for the agent that owns the address: the one whose check was answered from there, or else the first one that has
// authenticated a request from there.
//
// Goroutines of ICE's call the mux and its connections. A panic there ends the process: the agents of all peers share
// the mux's state.
type iceMux struct {
	port *udp.Port
	// checks and answers are the sockets that send to addresses which may not be there: checks to those that were only
	// named, answers to those that have answered no check. They are the port's first socket if it has no others.
	checks, answers *udp.Socket
	addresses       []net.Addr
	unbounded       bool
	own             *hostnet.OwnAddresses
	permits         func(netip.AddrPort) bool
	// routes has the addresses that media goes to.
	routes *routes

	// refused counts checks from too many addresses, limited datagrams beyond the bounds, and unconsented datagrams that
	// were not sent since the remote peer does not consent.
	refused, limited, unconsented atomic.Uint64
	floods                        floods

	mu     sync.Mutex
	closed bool
	// agents are by local ICE user name fragment.
	agents map[string]*muxAgent
	// owners are by remote address; transactions has the agents whose checks wait for an answer.
	owners       map[netip.AddrPort]owner
	transactions map[transactionID]*muxAgent
	// mapping waits for responses of STUN servers.
	mapping map[transactionID]chan<- netip.AddrPort

	// sources bounds what comes from each address, targets the checks to addresses that were only named.
	sources, targets ratelimit.Sources

	// records bounds the datagrams with records that come from each address, of known peers.
	records *ratelimit.SharedSources
}

// controlBuffer is the send buffer of the sockets that send to addresses which may not be there: 64 KiB are some 170 of
// the kernel's smallest packets (768 bytes with their bookkeeping).
const controlBuffer = 64 << 10

// newICEMux makes the mux of a port.
func newICEMux(port *udp.Port, routes *routes, config Config) *iceMux {
	own := hostnet.NewOwnAddresses(config.PublicIPs)
	m := &iceMux{
		port: port, checks: port.Sockets()[0], answers: port.Sockets()[0], addresses: hostnet.ListenAddresses(port.Address()),
		unbounded: config.Initiates, own: own, permits: config.permitsChecks(own), routes: routes,
		agents: make(map[string]*muxAgent), owners: make(map[netip.AddrPort]owner),
		transactions: make(map[transactionID]*muxAgent), mapping: make(map[transactionID]chan<- netip.AddrPort),
		sources: sourceRate.Sources(), targets: targetRate.Sources(),
		records: ratelimit.NewSharedSources(sourceRecordRate.PerSecond, sourceRecordRate.Burst),
	}
	if config.Initiates {
		return m
	}
	for _, socket := range []**udp.Socket{&m.checks, &m.answers} {
		// Without a socket of its own, what it is for shares the first one.
		sender, err := port.OpenSender(udp.SenderConfig{Buffer: controlBuffer, Patience: time.Nanosecond})
		if err == nil {
			*socket = sender
		}
	}
	return m
}

// permitsChecks decides which addresses may be sent checks that have not been heard from. A participant must not have the
// server send to itself, to hosts that only the server reaches, or to groups.
func (c Config) permitsChecks(own *hostnet.OwnAddresses) func(netip.AddrPort) bool {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return func(to netip.AddrPort) bool {
		a := to.Addr().WithZone("")
		return to.Port() != 0 && a.IsGlobalUnicast() && a != broadcast && !own.Has(a) && (c.PrivateCandidates || !a.IsPrivate())
	}
}

// owner is the agent that datagrams of an address go to. proven is set if the address has answered a check of the agent.
type owner struct {
	agent  *muxAgent
	proven bool
}

// muxAgent is one ICE agent from the time it gathers candidates until it restarts or ends.
type muxAgent struct {
	mux   *iceMux
	ufrag string
	// What follows is guarded by the mux's mutex.

	// peer is told of checks and answers. It is nil until the peer has registered.
	peer *Peer
	// stun and data bound the remote peer's STUN messages and its other datagrams.
	stun, data ratelimit.Bucket
	checks     *checks
	named      named
	// inboxes are those of the address families. Each is shared by the connections of the agent's candidates of that family.
	inboxes [families]*muxInbox
	owned   map[netip.AddrPort]struct{}
}

// The address families, by which an agent's candidates differ.
const (
	ipv4 = iota
	ipv6
	families
)

func familyOf(address netip.Addr) int {
	if address.Unmap().Is4() {
		return ipv4
	}
	return ipv6
}

// muxInbox holds datagrams until one of the agent's connections reads them.
type muxInbox struct {
	queue  chan inboxDatagram
	closed chan struct{}
	// conns counts the connections that are open.
	conns int
}

// inboxDatagram is a copy of a datagram and its source.
type inboxDatagram struct {
	data *[receiveBytes]byte
	size int
	from netip.AddrPort
}

// inboxMemory is what datagrams are copied to.
var inboxMemory = sync.Pool{New: func() any { return new([receiveBytes]byte) }}

// muxConn is one candidate's connection. It implements net.PacketConn and ice.AddrPortReaderWriter.
type muxConn struct {
	agent  *muxAgent
	inbox  *muxInbox
	local  net.Addr
	closed chan struct{}
	once   sync.Once
}

// register announces the agent of a peer before the agent gathers.
func (m *iceMux) register(ufrag string, peer *Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.agent(ufrag)
	a.peer = peer
	peer.path.agent.Store(a)
}

// roundTrip is the time that an address has last taken to answer a check, 0 if it is unknown.
func (a *muxAgent) roundTrip(address netip.AddrPort) time.Duration {
	a.mux.mu.Lock()
	defer a.mux.mu.Unlock()
	if r := a.checks.remotes[address]; r != nil {
		return r.took
	}
	return 0
}

// agent finds an agent, and makes it if there is none. The caller holds the mutex.
func (m *iceMux) agent(ufrag string) *muxAgent {
	a := m.agents[ufrag]
	if a == nil {
		a = &muxAgent{
			mux: m, ufrag: ufrag,
			stun: agentRate.Bucket(), data: dataRate.Bucket(),
			checks: newChecks(m.unbounded, m.permits, m.targets.Take), owned: make(map[netip.AddrPort]struct{}),
		}
		m.agents[ufrag] = a
	}
	return a
}

// GetConn implements ice.UDPMux.
func (m *iceMux) GetConn(ufrag string, local net.Addr) (net.PacketConn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, io.ErrClosedPipe
	}
	a := m.agent(ufrag)
	family := ipv4
	if udp, ok := local.(*net.UDPAddr); ok {
		family = familyOf(udp.AddrPort().Addr())
	}
	inbox := a.inboxes[family]
	if inbox == nil {
		inbox = &muxInbox{queue: make(chan inboxDatagram, inboxDatagrams), closed: make(chan struct{})}
		a.inboxes[family] = inbox
	}
	inbox.conns++
	return &muxConn{agent: a, inbox: inbox, local: local, closed: make(chan struct{})}, nil
}

// RemoveConnByUfrag implements ice.UDPMux.
func (m *iceMux) RemoveConnByUfrag(ufrag string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.agents[ufrag]; a != nil {
		a.remove()
	}
}

// remove ends an agent's connections and forgets it. The caller holds the mutex, here and below.
func (a *muxAgent) remove() {
	if a.mux.agents[a.ufrag] == a {
		delete(a.mux.agents, a.ufrag)
	}
	for address := range a.owned {
		delete(a.mux.owners, address)
	}
	for id := range a.checks.pending {
		delete(a.mux.transactions, id)
	}
	clear(a.owned)
	clear(a.checks.pending)
	for i, inbox := range a.inboxes {
		if inbox != nil {
			close(inbox.closed)
			a.inboxes[i] = nil
		}
	}
}

// own makes an address the agent's. A proven claim takes the address from whoever has it, another one only if it is free.
func (a *muxAgent) own(address netip.AddrPort, proven bool) {
	before, owned := a.mux.owners[address]
	if owned && !proven || a.mux.agents[a.ufrag] != a {
		return
	}
	if owned && before.agent != a {
		delete(before.agent.owned, address)
	}
	a.mux.owners[address] = owner{agent: a, proven: proven}
	a.owned[address] = struct{}{}
}

// GetListenAddresses implements ice.UDPMux.
func (m *iceMux) GetListenAddresses() []net.Addr { return m.addresses }

// Close implements ice.UDPMux.
func (m *iceMux) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, a := range m.agents {
		a.remove()
	}
	return nil
}

// deliver gives the datagrams of a message that is no media of a known peer to the agents that they are for.
func (m *iceMux) deliver(message udp.Message, now time.Time) {
	for datagram := range message.Datagrams() {
		m.deliverOne(datagram, message.Peer, now)
	}
}

// deliverOne gives one datagram to the agent that it is for. It drops a datagram that exceeds what its source or its
// agent may send, that is for no agent, or that an agent has no room for.
func (m *iceMux) deliverOne(datagram []byte, from netip.AddrPort, now time.Time) {
	if len(datagram) == 0 || len(datagram) > receiveBytes {
		return
	}
	message, isSTUN := parseSTUN(datagram)
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.addressee(message, isSTUN, from, now)
	if a == nil {
		m.floods.note(datagram, from)
		return
	}
	rate := &a.data
	if isSTUN {
		rate = &a.stun
	}
	if !rate.Take(now) || !m.sources.Take(from.Addr(), now) {
		m.limited.Add(1)
		m.floods.note(datagram, from)
		return
	}
	a.put(datagram, from)
}

// addressee finds the agent that a datagram is for, nil if there is none.
func (m *iceMux) addressee(message stunMessage, isSTUN bool, from netip.AddrPort, now time.Time) *muxAgent {
	if !isSTUN {
		return m.owners[from].agent
	}
	switch message.kind() {
	case kindRequest:
		a := m.agents[string(message.addressee())]
		if a != nil && !a.checks.hears(from, now) {
			m.refused.Add(1)
			return nil
		}
		return a
	case kindSuccess, kindError:
		id := message.transaction()
		if waiting := m.mapping[id]; waiting != nil {
			m.mapped(waiting, message)
			return nil
		}
		a := m.transactions[id]
		if a == nil || !a.checks.answers(from, id, now) {
			return nil
		}
		delete(m.transactions, id)
		a.own(from, true)
		a.reach(from)
		if a.peer != nil {
			a.peer.path.answered(from, id, now)
		}
		return a
	}
	return nil
}

// put queues a copy of a datagram.
func (a *muxAgent) put(datagram []byte, from netip.AddrPort) {
	inbox := a.inboxes[familyOf(from.Addr())]
	if inbox == nil {
		return
	}
	data := inboxMemory.Get().(*[receiveBytes]byte)
	select {
	case inbox.queue <- inboxDatagram{data, copy(data[:], datagram), from}:
	default:
		inboxMemory.Put(data)
		a.mux.limited.Add(1)
	}
}

// ReadFromAddrPort implements ice.AddrPortReaderWriter.
func (c *muxConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case d := <-c.inbox.queue:
		n := copy(b, d.data[:d.size])
		inboxMemory.Put(d.data)
		return n, d.from, nil
	case <-c.inbox.closed:
		return 0, netip.AddrPort{}, io.EOF
	case <-c.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

// ReadFrom implements net.PacketConn.
func (c *muxConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteToAddrPort implements ice.AddrPortReaderWriter. A check that may not leave is lost, as on the network, and so is
// what the network has no room for.
func (c *muxConn) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	select {
	case <-c.closed:
		return 0, io.ErrClosedPipe
	case <-c.inbox.closed:
		return 0, io.ErrClosedPipe
	default:
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	socket := c.agent.sends(b, to, time.Now())
	if socket == nil {
		return len(b), nil
	}
	if err := socket.Send([]udp.Message{{Peer: to, Data: b, Segment: len(b)}}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// sends chooses the socket that a datagram leaves from, nil if it may not leave.
func (a *muxAgent) sends(datagram []byte, to netip.AddrPort, now time.Time) *udp.Socket {
	m := a.mux
	message, isSTUN := parseSTUN(datagram)
	m.mu.Lock()
	defer m.mu.Unlock()
	if isSTUN && message.kind() == kindSuccess {
		a.checks.heard(to)
		a.own(to, false)
		a.reach(to)
		if !a.checks.repliesTo(to) {
			return nil
		}
	}
	known := m.owners[to]
	proven := known.agent == a && known.proven
	if !isSTUN || message.kind() != kindRequest {
		if !isSTUN && m.routes.silent(to) {
			m.unconsented.Add(1)
			return nil
		}
		if proven {
			return m.routes.socket(to, m.port)
		}
		return m.answers
	}
	if !a.begin(to, message.transaction(), now) {
		return nil
	}
	if a.peer != nil {
		a.peer.path.consent.checked(to, datagram, now)
	}
	if proven {
		return m.routes.socket(to, m.port)
	}
	return m.answers
}

// begin reports whether a check may leave for an address, and waits for its answer if so. The caller holds the mutex.
func (a *muxAgent) begin(to netip.AddrPort, id transactionID, now time.Time) bool {
	forgotten, allowed := a.checks.sends(to, id, now)
	if allowed {
		delete(a.mux.transactions, forgotten)
		a.mux.transactions[id] = a
	}
	return allowed
}

// WriteTo implements net.PacketConn.
func (c *muxConn) WriteTo(b []byte, to net.Addr) (int, error) {
	address, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, net.InvalidAddrError("expected a UDP address, not " + to.String())
	}
	return c.WriteToAddrPort(b, address.AddrPort())
}

// LocalAddr implements net.PacketConn.
func (c *muxConn) LocalAddr() net.Addr { return c.local }

// Close implements net.PacketConn. The last connection of an agent's family takes the inbox with it.
func (c *muxConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		m := c.agent.mux
		m.mu.Lock()
		defer m.mu.Unlock()
		c.inbox.conns--
		for i, inbox := range c.agent.inboxes {
			if inbox == c.inbox && inbox.conns == 0 {
				close(inbox.closed)
				c.agent.inboxes[i] = nil
			}
		}
		if c.agent.inboxes == [families]*muxInbox{} {
			c.agent.remove()
		}
	})
	return nil
}

// SetDeadline implements net.PacketConn, as do the others. Writing never waits long, and reading waits until the end.
func (c *muxConn) SetDeadline(time.Time) error      { return nil }
func (c *muxConn) SetReadDeadline(time.Time) error  { return nil }
func (c *muxConn) SetWriteDeadline(time.Time) error { return nil }
