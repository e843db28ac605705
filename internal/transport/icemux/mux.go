// Package icemux shares the media port among ICE agents: it delivers datagrams to agents, and limits the datagrams that
// remote peers and addresses may send, and the datagrams that agents may send to addresses that have not answered.
//
// The goroutines that read the media port deliver datagrams. Goroutines of ICE read them and send. The endpoint steps
// the Mux. One mutex guards the agents. Media of known peers does not take the mutex.
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

// Rate limits of datagrams that are not media of a known peer, per participant and per address, in datagrams per
// second.
var (
	// AgentRate limits STUN messages. ICE checks a selected pair every 2 s. While connecting, a browser sends one check
	// every 50 ms and repeats DTLS flights, and Pion's agent sends one check to each of our addresses every
	// CheckInterval.
	AgentRate = ratelimit.Rate{PerSecond: 100, Burst: 256}
	// dataRate limits other datagrams: DTLS flights, and media of a peer whose address has changed, until ICE selects
	// the new address.
	dataRate = ratelimit.Rate{PerSecond: 2000, Burst: 512}
	// SourceRate limits the datagrams of one address: 64 clients behind one NAT that all join within a second. It
	// counts only datagrams that are for an agent and within the agent's limits.
	SourceRate = ratelimit.Rate{PerSecond: 2000, Burst: 4000}
	// targetRate limits the checks of all agents to one address from which nothing was received, so that many
	// participants together cannot direct more checks at a third party than one participant. 64 clients behind one NAT
	// that join within a second receive some three checks each there until their own checks arrive.
	targetRate = ratelimit.Rate{PerSecond: 50, Burst: 400}
)

const (
	// CheckInterval is the interval of checks of pairs that have not answered (Ta in RFC 8445 section 14.2 is 50 ms).
	// Pion's 200 ms would be a third of the time that a join takes.
	CheckInterval = 50 * time.Millisecond
	// StepInterval is the time between two calls of Step.
	StepInterval = 250 * time.Millisecond
	// MaxDatagram is above the largest datagram for ICE, in bytes. Media fits into an Ethernet frame, and DTLS records
	// are cut to 1,200 bytes.
	MaxDatagram = 2048
)

// Routes reports the addresses that media is sent to.
type Routes interface {
	// Socket returns the socket that sends media to an address, nil if no media is sent there.
	Socket(address netip.AddrPort) *udp.Socket
	// Silent reports whether an address has a route on which media is stopped at present.
	Silent(address netip.AddrPort) bool
	// Ports returns the ports of a source that media is sent to.
	Ports(source netip.Prefix) []uint16
}

// Peer is the owner of an ICE agent. The Mux calls it with the Mux's mutex held.
type Peer interface {
	// AddRemoteCandidate adds a candidate to the ICE agent. It does not wait for the agent.
	AddRemoteCandidate(ice.Candidate) error
	// Checked is called for a check that leaves. The bytes are valid until Checked returns.
	Checked(to netip.AddrPort, id TransactionID, check []byte, now time.Time)
	// Answered is called for a response to a check, from the address of the check. The response is not authenticated,
	// and is valid until Answered returns. took is the time since the check left, which is the round-trip time if the
	// check was sent once.
	Answered(from netip.AddrPort, id TransactionID, response []byte, took time.Duration, now time.Time)
	// Routed reports whether media has a direct route.
	Routed() bool
}

// Config is the configuration of a Mux.
type Config struct {
	// PublicIPs are the addresses at which this host is reached, besides those of its interfaces.
	PublicIPs []string
	// PrivateCandidates permits checks to private addresses from which nothing was received.
	PrivateCandidates bool
	// Unbounded is set for clients. Clients connect to the server that their user chose, and are the first to send.
	Unbounded bool
	// Records limits the datagrams with DTLS records of all peers at one address.
	Records ratelimit.Rate
}

// inboxDatagrams is the number of datagrams that wait for an agent in each address family. At MaxDatagram each, an
// agent that does not read holds 256 KiB.
const inboxDatagrams = 128

// Mux shares the media port among ICE agents. It delivers datagrams to agents, within limits, and sends the agents'
// datagrams. Mux implements ice.UDPMux. Pion's own mux queues without bounds, and assigns an address to the last agent
// that has sent to it.
//
// A request is for the agent in its USERNAME. A response is for the agent that has sent the check. Other datagrams are
// for the agent that owns the address: the agent whose check was answered from there or, without an answer, the first
// agent that has authenticated a request from there.
//
// ICE's goroutines call the mux and its connections. A panic there ends the process, because the agents of all peers
// share the mux's state.
type Mux struct {
	port *udp.Port
	// checks and answers are the sockets for addresses that may not exist. checks sends the Mux's checks to named
	// addresses. answers sends the datagrams of agents to addresses that have not answered a check. Both are the port's
	// first socket if no other can be opened.
	checks, answers *udp.Socket
	addresses       []net.Addr
	unbounded       bool
	own             *hostnet.OwnAddresses
	permits         func(netip.AddrPort) bool
	// routes has the addresses that media is sent to.
	routes Routes

	// refused counts checks from too many addresses, limited counts datagrams above the rate limits, and unconsented
	// counts datagrams that were not sent because the remote peer does not consent.
	refused, limited, unconsented atomic.Uint64
	floods                        floods

	mu     sync.Mutex
	closed bool
	// agents are by local ICE user name fragment.
	agents map[string]*Agent
	// owners are by remote address. transactions are the agents whose checks wait for an answer.
	owners       map[netip.AddrPort]owner
	transactions map[TransactionID]*Agent
	// mapping are the requests that wait for responses of STUN servers.
	mapping map[TransactionID]chan<- netip.AddrPort

	// sources limits the datagrams from each address, targets the checks to each address from which nothing was
	// received.
	sources, targets ratelimit.Sources

	// records limits the datagrams with DTLS records of known peers, for each address.
	records *ratelimit.SharedSources
}

// controlBuffer is the send buffer of the sockets for addresses that may not exist: 64 KiB are some 170 of the kernel's
// smallest packets (768 bytes with the kernel's bookkeeping).
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
		// If the socket cannot be opened, the first socket is used.
		sender, err := port.OpenSender(udp.SenderConfig{Buffer: controlBuffer, Patience: time.Nanosecond})
		if err == nil {
			*socket = sender
		}
	}
	return m
}

// permitsChecks returns the rule for addresses from which nothing was received. A participant must not make the server
// send to the server itself, to hosts that only the server reaches, or to groups.
func (c Config) permitsChecks(own *hostnet.OwnAddresses) func(netip.AddrPort) bool {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return func(to netip.AddrPort) bool {
		a := to.Addr().WithZone("")
		return to.Port() != 0 && a.IsGlobalUnicast() && a != broadcast && !own.Has(a) &&
			(c.PrivateCandidates || !a.IsPrivate())
	}
}

// owner is the agent that receives the datagrams of an address. proven is set if the address has answered a check of
// the agent.
type owner struct {
	agent  *Agent
	proven bool
}

// Agent is one ICE agent from the time at which it gathers candidates until it restarts or ends.
type Agent struct {
	mux   *Mux
	ufrag string
	// The Mux's mutex guards the fields below.

	// peer is called for checks and answers. It is nil until Register.
	peer Peer
	// stun and data limit the remote peer's STUN messages and its other datagrams.
	stun, data ratelimit.Bucket
	checks     *checks
	named      named
	// inboxes are by address family. The connections of the agent's candidates of a family share one inbox.
	inboxes [families]*agentInbox
	owned   map[netip.AddrPort]struct{}
}

// The address families of an agent's candidates.
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
	queue  chan *inboxDatagram
	closed chan struct{}
	// conns counts the open connections.
	conns int
}

// inboxDatagram is a copy of a datagram, with its source. A queue has pointers, because the queue of each agent has
// room for inboxDatagrams.
type inboxDatagram struct {
	data [MaxDatagram]byte
	size int
	from netip.AddrPort
}

// inboxMemory has the memory for the copies.
var inboxMemory = sync.Pool{New: func() any { return new(inboxDatagram) }}

// candidateConn is the connection of one candidate. candidateConn implements net.PacketConn and
// ice.AddrPortReaderWriter.
type candidateConn struct {
	agent  *Agent
	inbox  *agentInbox
	local  net.Addr
	closed chan struct{}
	once   sync.Once
}

// Register sets the peer of an agent before the agent gathers.
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

// Step sends checks to named addresses, refreshes this host's own addresses, and rejects floods. It is called every
// StepInterval.
func (m *Mux) Step(now time.Time) {
	if !m.unbounded {
		m.own.Step(now)
	}
	m.checkNamed(now)
	if shunned, changed := m.floods.step(now); changed {
		m.reject(shunned)
	}
}

// Counts counts datagrams that limits rejected, on receiving or on sending.
type Counts struct {
	// Refused counts checks from too many addresses, Limited counts datagrams above the rate limits, and Unconsented
	// counts datagrams that were not sent because the remote peer does not consent.
	Refused, Limited, Unconsented uint64
}

// Counts returns the counts since New.
func (m *Mux) Counts() Counts {
	return Counts{Refused: m.refused.Load(), Limited: m.limited.Load(), Unconsented: m.unconsented.Load()}
}

// AddUnconsented counts datagrams that were not sent because the remote peer does not consent.
func (m *Mux) AddUnconsented(datagrams int) { m.unconsented.Add(uint64(datagrams)) }

// Refuse counts a datagram from a known peer above the peer's rate limit.
func (m *Mux) Refuse(datagram []byte, from netip.AddrPort) {
	m.limited.Add(1)
	m.floods.note(datagram, from)
}

// AdmitsRecords reports whether one more datagram with DTLS records is accepted from an address. If not, the datagram
// is counted: the peer is within its own limit, and other peers have used up the limit of the address.
func (m *Mux) AdmitsRecords(from netip.Addr, now time.Time) bool {
	if !m.records.TakeAll(from, 1, now) {
		m.limited.Add(1)
		return false
	}
	return true
}

// RoundTrip returns the last round-trip time of a check to an address, 0 if it is unknown.
func (a *Agent) RoundTrip(address netip.AddrPort) time.Duration {
	a.mux.mu.Lock()
	defer a.mux.mu.Unlock()
	if r := a.checks.remotes[address]; r != nil {
		return r.took
	}
	return 0
}

// agent returns the agent of a user name fragment, and makes the agent if there is none. The caller holds the mutex.
func (m *Mux) agent(ufrag string) *Agent {
	a := m.agents[ufrag]
	if a == nil {
		a = &Agent{
			mux: m, ufrag: ufrag,
			stun: AgentRate.Bucket(), data: dataRate.Bucket(),
			checks: newChecks(m.unbounded, m.permits, m.targets.Take), owned: make(map[netip.AddrPort]struct{}),
		}
		a.checks.forget = a.disown
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
		inbox = &agentInbox{queue: make(chan *inboxDatagram, inboxDatagrams), closed: make(chan struct{})}
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

// remove closes an agent's connections and removes the agent. The caller of remove, own and disown holds the mutex.
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

// own makes an address the agent's. A proven claim replaces the owner. Any other claim succeeds only if the address has
// no owner.
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

// disown ends the ownership of an address.
func (a *Agent) disown(address netip.AddrPort) {
	if a.mux.owners[address].agent == a {
		delete(a.mux.owners, address)
	}
	delete(a.owned, address)
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

// Deliver delivers the datagrams of a message that is not media of a known peer.
func (m *Mux) Deliver(message udp.Message, now time.Time) {
	for datagram := range message.Datagrams() {
		m.DeliverOne(datagram, message.Peer, now)
	}
}

// DeliverOne delivers one datagram to its agent. A datagram is dropped if it exceeds the rate limit of its source or
// its agent, if it is for no agent, or if the agent's inbox is full.
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

// addressee returns the agent that a datagram is for, nil if there is none.
func (m *Mux) addressee(message stunMessage, isSTUN bool, from netip.AddrPort, now time.Time) *Agent {
	if !isSTUN {
		return m.owners[from].agent
	}
	switch message.kind() {
	case kindRequest:
		a := m.agents[string(message.addressee())]
		if a != nil && !a.checks.accepts(from, now) {
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
		if a == nil {
			return nil
		}
		took, answers := a.checks.answers(from, id, now)
		if !answers {
			return nil
		}
		delete(m.transactions, id)
		a.own(from, true)
		a.reach(from)
		if a.peer != nil {
			a.peer.Answered(from, id, message, took, now)
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
	d := inboxMemory.Get().(*inboxDatagram)
	d.size, d.from = copy(d.data[:], datagram), from
	select {
	case inbox.queue <- d:
	default:
		inboxMemory.Put(d)
		a.mux.limited.Add(1)
	}
}

// ReadFromAddrPort implements ice.AddrPortReaderWriter.
func (c *candidateConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case d := <-c.inbox.queue:
		n, from := copy(b, d.data[:d.size]), d.from
		inboxMemory.Put(d)
		return n, from, nil
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

// WriteToAddrPort implements ice.AddrPortReaderWriter. A check that may not leave is lost, as on the network.
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

// sends returns the socket that sends a datagram, nil if the datagram may not leave.
func (a *Agent) sends(datagram []byte, to netip.AddrPort, now time.Time) *udp.Socket {
	m := a.mux
	message, isSTUN := parseSTUN(datagram)
	m.mu.Lock()
	defer m.mu.Unlock()
	if isSTUN && message.kind() == kindSuccess {
		a.checks.authenticated(to, now)
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

// socketTo returns the socket for datagrams to an address.
func (m *Mux) socketTo(to netip.AddrPort) *udp.Socket {
	if socket := m.routes.Socket(to); socket != nil {
		return socket
	}
	return m.port.Sockets()[0]
}

// begin reports whether a check may leave for an address, and if so waits for its answer. The caller holds the mutex.
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

// Close implements net.PacketConn. The last connection of a family closes the inbox.
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

// SetDeadline implements net.PacketConn, as do the two methods below. Deadlines are ignored: writing does not wait
// long, and reading ends when the connection is closed.
func (c *candidateConn) SetDeadline(time.Time) error      { return nil }
func (c *candidateConn) SetReadDeadline(time.Time) error  { return nil }
func (c *candidateConn) SetWriteDeadline(time.Time) error { return nil }
