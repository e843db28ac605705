// Package icemux is the media port as ICE agents see it: it gives each agent the datagrams that are for it, and bounds
// what remote peers and addresses may send, and what agents may send to addresses that have answered nothing.
//
// The goroutines that read the media port deliver datagrams, goroutines of ICE read them and send, and the endpoint
// steps the Mux. One mutex guards the agents. It is not taken for media of known peers.
package icemux

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"

	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/udp"
)

// What one participant and one address may send of what is not media of a known peer, in datagrams per second.
var (
	// AgentRate bounds STUN messages: ICE checks a pair every 2 s once it is selected. While it connects, a browser
	// sends one check every 50 ms and repeats DTLS flights, and Pion's agent sends one to each of our addresses every
	// CheckInterval.
	AgentRate = ratelimit.Rate{PerSecond: 100, Burst: 256}
	// dataRate bounds other datagrams: DTLS flights, and media of a peer whose address has changed until ICE selects
	// the new one.
	dataRate = ratelimit.Rate{PerSecond: 2000, Burst: 512}
	// SourceRate bounds those of one address: 64 clients behind one NAT that all join within a second. It counts only
	// datagrams that are for an agent and within the agent's own bounds.
	SourceRate = ratelimit.Rate{PerSecond: 2000, Burst: 4000}
	// targetRate bounds the checks of all agents to one address that was only named, so that many participants together
	// cannot aim more at a third party than one may. 64 clients behind one NAT that join within a second are each sent
	// some three there until their own checks come.
	targetRate = ratelimit.Rate{PerSecond: 50, Burst: 400}
)

const (
	// CheckInterval is how often pairs are checked that have not answered (RFC 8445 section 14.2 has Ta of 50 ms).
	// Pion's 200 ms would be a third of a join.
	CheckInterval = 50 * time.Millisecond
	// StepInterval is the time between two calls of Step.
	StepInterval = 250 * time.Millisecond
	// MaxDatagram is above the largest datagram that ICE is given, in bytes: media fits an Ethernet frame, DTLS records
	// are cut to 1,200 bytes.
	MaxDatagram = 2048
)

// Routes says where media goes.
type Routes interface {
	// Socket returns the socket that media to an address leaves from, nil if none goes there.
	Socket(address netip.AddrPort) *udp.Socket
	// Silent reports whether media goes to an address, but not at present.
	Silent(address netip.AddrPort) bool
	// Ports returns the ports of a source that media goes to.
	Ports(source netip.Prefix) []uint16
}

// Peer is the owner of an ICE agent. The Mux calls it under its mutex.
type Peer interface {
	// AddRemoteCandidate gives the ICE agent a candidate. It does not wait for the agent.
	AddRemoteCandidate(ice.Candidate) error
	// Checked is told of a check that leaves. The bytes are valid until it returns.
	Checked(to netip.AddrPort, id TransactionID, check []byte, now time.Time)
	// Answered is told that the remote peer has answered a check from an address.
	Answered(from netip.AddrPort, id TransactionID, now time.Time)
	// Routed reports whether media has a way past ICE.
	Routed() bool
}

// Config tunes a Mux.
type Config struct {
	// PublicIPs are the addresses at which this host is reached, beside those of its interfaces.
	PublicIPs []string
	// PrivateCandidates permits checks to private addresses that nothing has come from.
	PrivateCandidates bool
	// Unbounded is set for clients: they connect to the server of their user's choice, and are the first to send.
	Unbounded bool
	// Records bounds the datagrams with DTLS records that come from one address, for all its peers together.
	Records ratelimit.Rate
}

// inboxDatagrams is how many datagrams wait for an agent in each address family. With MaxDatagram each, an agent that
// does not read holds 256 KiB.
const inboxDatagrams = 128

// Mux is the media port as ICE agents see it. It gives each agent the datagrams that are for it, within bounds, and
// sends what agents send. It implements ice.UDPMux; Pion's own mux queues without bounds, and gives an address to
// whichever agent has sent to it last.
//
// A request is for the agent that its USERNAME names, a response for the agent that has sent the check, and anything
// else for the agent that owns the address: the one whose check was answered from there, or else the first one that has
// authenticated a request from there.
//
// Goroutines of ICE's call the mux and its connections. A panic there ends the process: the agents of all peers share
// the mux's state.
type Mux struct {
	port *udp.Port
	// checks and answers are the sockets that send to addresses which may not be there: checks to those that were only
	// named, answers to those that have answered no check. They are the port's first socket if it has no others.
	checks, answers *udp.Socket
	addresses       []net.Addr
	unbounded       bool
	own             *hostnet.OwnAddresses
	permits         func(netip.AddrPort) bool
	// routes has the addresses that media goes to.
	routes Routes

	// refused counts checks from too many addresses, limited datagrams beyond the bounds, and unconsented datagrams
	// that were not sent since the remote peer does not consent.
	refused, limited, unconsented atomic.Uint64
	floods                        floods

	mu     sync.Mutex
	closed bool
	// agents are by local ICE user name fragment.
	agents map[string]*Agent
	// owners are by remote address; transactions has the agents whose checks wait for an answer.
	owners       map[netip.AddrPort]owner
	transactions map[TransactionID]*Agent
	// mapping waits for responses of STUN servers.
	mapping map[TransactionID]chan<- netip.AddrPort

	// sources bounds what comes from each address, targets the checks to addresses that were only named.
	sources, targets ratelimit.Sources

	// records bounds the datagrams with records that come from each address, of known peers.
	records *ratelimit.SharedSources
}

// controlBuffer is the send buffer of the sockets that send to addresses which may not be there: 64 KiB are some 170 of
// the kernel's smallest packets (768 bytes with their bookkeeping).
const controlBuffer = 64 << 10

// New makes the mux of a port.
func New(port *udp.Port, routes Routes, config Config) *Mux {
	own := hostnet.NewOwnAddresses(config.PublicIPs)
	m := &Mux{
		port: port, checks: port.Sockets()[0], answers: port.Sockets()[0],
		addresses: hostnet.ListenAddresses(port.Address()),
		unbounded: config.Unbounded, own: own, permits: config.permitsChecks(own), routes: routes,
		agents: make(map[string]*Agent), owners: make(map[netip.AddrPort]owner),
		transactions: make(map[TransactionID]*Agent), mapping: make(map[TransactionID]chan<- netip.AddrPort),
		sources: SourceRate.Sources(), targets: targetRate.Sources(),
		records: ratelimit.NewSharedSources(config.Records.PerSecond, config.Records.Burst),
	}
	if config.Unbounded {
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

// permitsChecks decides which addresses may be sent checks that have not been heard from. A participant must not have
// the server send to itself, to hosts that only the server reaches, or to groups.
func (c Config) permitsChecks(own *hostnet.OwnAddresses) func(netip.AddrPort) bool {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return func(to netip.AddrPort) bool {
		a := to.Addr().WithZone("")
		return to.Port() != 0 && a.IsGlobalUnicast() && a != broadcast && !own.Has(a) &&
			(c.PrivateCandidates || !a.IsPrivate())
	}
}

// owner is the agent that datagrams of an address go to. proven is set if the address has answered a check of the
// agent.
type owner struct {
	agent  *Agent
	proven bool
}

// Agent is one ICE agent from the time it gathers candidates until it restarts or ends.
type Agent struct {
	mux   *Mux
	ufrag string
	// What follows is guarded by the mux's mutex.

	// peer is told of checks and answers. It is nil until the peer has registered.
	peer Peer
	// stun and data bound the remote peer's STUN messages and its other datagrams.
	stun, data ratelimit.Bucket
	checks     *checks
	named      named
	// inboxes are those of the address families. Each is shared by the connections of the agent's candidates of that
	// family.
	inboxes [families]*agentInbox
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

// agentInbox holds datagrams until one of the agent's connections reads them.
type agentInbox struct {
	queue  chan inboxDatagram
	closed chan struct{}
	// conns counts the connections that are open.
	conns int
}

// inboxDatagram is a copy of a datagram and its source.
type inboxDatagram struct {
	data *[MaxDatagram]byte
	size int
	from netip.AddrPort
}

// inboxMemory is what datagrams are copied to.
var inboxMemory = sync.Pool{New: func() any { return new([MaxDatagram]byte) }}

// candidateConn is one candidate's connection. It implements net.PacketConn and ice.AddrPortReaderWriter.
type candidateConn struct {
	agent  *Agent
	inbox  *agentInbox
	local  net.Addr
	closed chan struct{}
	once   sync.Once
}

// Register announces the agent of a peer before the agent gathers.
func (m *Mux) Register(ufrag string, peer Peer) *Agent {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.agent(ufrag)
	a.peer = peer
	return a
}

// Knows reports whether there is an agent with a local ICE user name fragment.
func (m *Mux) Knows(ufrag string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agents[ufrag] != nil
}

// Step checks named addresses, looks at this host's own addresses, and shuns floods. It is called every StepInterval.
func (m *Mux) Step(now time.Time) {
	if !m.unbounded {
		m.own.Step(now)
	}
	m.checkNamed(now)
	if shunned, changed := m.floods.step(now); changed {
		m.reject(shunned)
	}
}

// Counts are the counts of what was not taken or sent since a limit was reached.
type Counts struct {
	// Refused are checks from too many addresses, Limited datagrams beyond the bounds, and Unconsented datagrams that
	// were not sent since the remote peer does not consent.
	Refused, Limited, Unconsented uint64
}

// Counts returns the counts since the beginning.
func (m *Mux) Counts() Counts {
	return Counts{Refused: m.refused.Load(), Limited: m.limited.Load(), Unconsented: m.unconsented.Load()}
}

// AddUnconsented counts datagrams that were not sent since the remote peer does not consent.
func (m *Mux) AddUnconsented(datagrams int) { m.unconsented.Add(uint64(datagrams)) }

// Refuse counts a datagram from a known peer that exceeds what the peer may send.
func (m *Mux) Refuse(datagram []byte, from netip.AddrPort) {
	m.limited.Add(1)
	m.floods.note(datagram, from)
}

// AdmitsRecords reports whether one more datagram with DTLS records may come from an address, and counts it if not: the
// peer is within its own bound, and others have used up that of the address.
func (m *Mux) AdmitsRecords(from netip.Addr, now time.Time) bool {
	if !m.records.TakeAll(from, 1, now) {
		m.limited.Add(1)
		return false
	}
	return true
}

// RoundTrip is the time that an address has last taken to answer a check, 0 if it is unknown.
func (a *Agent) RoundTrip(address netip.AddrPort) time.Duration {
	a.mux.mu.Lock()
	defer a.mux.mu.Unlock()
	if r := a.checks.remotes[address]; r != nil {
		return r.took
	}
	return 0
}

// agent finds an agent, and makes it if there is none. The caller holds the mutex.
func (m *Mux) agent(ufrag string) *Agent {
	a := m.agents[ufrag]
	if a == nil {
		a = &Agent{
			mux: m, ufrag: ufrag,
			stun: AgentRate.Bucket(), data: dataRate.Bucket(),
			checks: newChecks(m.unbounded, m.permits, m.targets.Take), owned: make(map[netip.AddrPort]struct{}),
		}
		m.agents[ufrag] = a
	}
	return a
}

// GetConn implements ice.UDPMux.
func (m *Mux) GetConn(ufrag string, local net.Addr) (net.PacketConn, error) {
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
		inbox = &agentInbox{queue: make(chan inboxDatagram, inboxDatagrams), closed: make(chan struct{})}
		a.inboxes[family] = inbox
	}
	inbox.conns++
	return &candidateConn{agent: a, inbox: inbox, local: local, closed: make(chan struct{})}, nil
}

// RemoveConnByUfrag implements ice.UDPMux.
func (m *Mux) RemoveConnByUfrag(ufrag string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.agents[ufrag]; a != nil {
		a.remove()
	}
}

// remove ends an agent's connections and forgets it. The caller holds the mutex, here and below.
func (a *Agent) remove() {
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

// own makes an address the agent's. A proven claim takes the address from whoever has it, another one only if it is
// free.
func (a *Agent) own(address netip.AddrPort, proven bool) {
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
func (m *Mux) GetListenAddresses() []net.Addr { return m.addresses }

// Close implements ice.UDPMux.
func (m *Mux) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, a := range m.agents {
		a.remove()
	}
	return nil
}

// Deliver gives the datagrams of a message that is no media of a known peer to the agents that they are for.
func (m *Mux) Deliver(message udp.Message, now time.Time) {
	for datagram := range message.Datagrams() {
		m.DeliverOne(datagram, message.Peer, now)
	}
}

// DeliverOne gives one datagram to the agent that it is for. It drops a datagram that exceeds what its source or its
// agent may send, that is for no agent, or that an agent has no room for.
func (m *Mux) DeliverOne(datagram []byte, from netip.AddrPort, now time.Time) {
	if len(datagram) == 0 || len(datagram) > MaxDatagram {
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
func (m *Mux) addressee(message stunMessage, isSTUN bool, from netip.AddrPort, now time.Time) *Agent {
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
			a.peer.Answered(from, id, now)
		}
		return a
	}
	return nil
}

// put queues a copy of a datagram.
func (a *Agent) put(datagram []byte, from netip.AddrPort) {
	inbox := a.inboxes[familyOf(from.Addr())]
	if inbox == nil {
		return
	}
	data := inboxMemory.Get().(*[MaxDatagram]byte)
	select {
	case inbox.queue <- inboxDatagram{data, copy(data[:], datagram), from}:
	default:
		inboxMemory.Put(data)
		a.mux.limited.Add(1)
	}
}

// ReadFromAddrPort implements ice.AddrPortReaderWriter.
func (c *candidateConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
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
func (c *candidateConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteToAddrPort implements ice.AddrPortReaderWriter. A check that may not leave is lost, as on the network, and so is
// what the network has no room for.
func (c *candidateConn) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
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
func (a *Agent) sends(datagram []byte, to netip.AddrPort, now time.Time) *udp.Socket {
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
		if !isSTUN && m.routes.Silent(to) {
			m.unconsented.Add(1)
			return nil
		}
		if proven {
			return m.socketTo(to)
		}
		return m.answers
	}
	if !a.begin(to, message.transaction(), now) {
		return nil
	}
	if a.peer != nil {
		a.peer.Checked(to, message.transaction(), datagram, now)
	}
	if proven {
		return m.socketTo(to)
	}
	return m.answers
}

// socketTo returns the socket that datagrams to an address leave from.
func (m *Mux) socketTo(to netip.AddrPort) *udp.Socket {
	if socket := m.routes.Socket(to); socket != nil {
		return socket
	}
	return m.port.Sockets()[0]
}

// begin reports whether a check may leave for an address, and waits for its answer if so. The caller holds the mutex.
func (a *Agent) begin(to netip.AddrPort, id TransactionID, now time.Time) bool {
	forgotten, allowed := a.checks.sends(to, id, now)
	if allowed {
		delete(a.mux.transactions, forgotten)
		a.mux.transactions[id] = a
	}
	return allowed
}

// WriteTo implements net.PacketConn.
func (c *candidateConn) WriteTo(b []byte, to net.Addr) (int, error) {
	address, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, net.InvalidAddrError("expected a UDP address, not " + to.String())
	}
	return c.WriteToAddrPort(b, address.AddrPort())
}

// LocalAddr implements net.PacketConn.
func (c *candidateConn) LocalAddr() net.Addr { return c.local }

// Close implements net.PacketConn. The last connection of an agent's family takes the inbox with it.
func (c *candidateConn) Close() error {
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
		if c.agent.inboxes == [families]*agentInbox{} {
			c.agent.remove()
		}
	})
	return nil
}

// SetDeadline implements net.PacketConn, as do the others. Writing never waits long, and reading waits until the end.
func (c *candidateConn) SetDeadline(time.Time) error      { return nil }
func (c *candidateConn) SetReadDeadline(time.Time) error  { return nil }
func (c *candidateConn) SetWriteDeadline(time.Time) error { return nil }
