package transport

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/transport/icemux"
	"github.com/volsfu/volsfu/internal/udp"
)

// PathState is the state of one path of a peer with several candidate pairs.
type PathState struct {
	// Path is the number of the path (PacketInfo.Path).
	Path          uint8
	Local, Remote netip.AddrPort
	// RTT is the shortest round-trip time of the latest checks, 0 if it is unknown.
	RTT time.Duration
	// Alive is set if one of the last four checks was answered.
	Alive bool
	// First counts the RTP packets that arrived first on this path. Repeated counts the authentic RTP packets of which
	// another copy had arrived before.
	First, Repeated uint64
	// Copied counts the datagrams sent on this path as copies.
	Copied uint64
}

// multipath is the part of a Peer that concerns several candidate pairs.
type multipath struct{ peer *Peer }

// UseAllPairs permits a second route: the remote peer has declared that it reads media on all its candidate pairs, and
// that each of its pairs is on an interface of its own. UseAllPairs must be called before the first description.
//
// Both sides then check all pairs every 250 ms. Media is sent on the preferred pair that works. Copies are sent on
// another one (SetCopied). If the remote peer has not answered four checks in a row on the preferred pair, the other
// pair takes over, and ICE follows.
func (m multipath) UseAllPairs() {
	pairs := &pairs{trusting: m.peer.endpoint.config.Initiates}
	m.peer.path.pairs.Store(pairs)
	m.peer.incoming.countPaths(&pairs.counts)
}

// SetCopied sets whether RTP packets that are queued from now on leave on both routes, of all outlets and including
// retransmissions. Initially they leave on the primary route alone. Without a second route SetCopied has no effect. A
// copy has the same bytes and leaves as Not-ECT. SetCopied takes no lock, and is safe for any goroutine.
func (m multipath) SetCopied(copied bool) { m.peer.outbox.copied.Store(copied) }

// SetDoubled sets whether RTP packets that are queued from now on leave twice on the primary route, of all outlets.
// This protects packets that are not retransmitted while there is no second route, or while it carries nothing.
// SetDoubled takes no lock, and is safe for any goroutine.
func (m multipath) SetDoubled(doubled bool) { m.peer.outbox.doubled.Store(doubled) }

// SecondRoute reports whether there is a second route at present. SecondRoute takes no lock.
func (m multipath) SecondRoute() bool { return m.peer.path.second.Load() != nil }

// PrimaryPath returns the number of the path that carries all packets at present. PrimaryPath takes no lock.
func (m multipath) PrimaryPath() uint8 {
	if route := m.peer.path.route.Load(); route != nil {
		return route.path
	}
	return 0
}

// Paths returns the paths that are checked at present, the one that carries all packets first. Without UseAllPairs
// there are none.
func (m multipath) Paths() []PathState {
	pairs := m.peer.path.pairs.Load()
	if pairs == nil {
		return nil
	}
	return pairs.snapshot(m.peer.path.route.Load().pair(), time.Now())
}

// snapshot returns the state of each path, the primary one first, the others by number. If several pairs have the
// number of a path, the one that answered last is the path.
func (p *pairs) snapshot(primary pairAddress, now time.Time) []PathState {
	p.mu.Lock()
	defer p.mu.Unlock()
	latest := make(map[uint8]*pairState)
	for _, s := range p.states {
		known := latest[s.path]
		switch {
		case known == nil, s.pairAddress == primary:
			latest[s.path] = s
		case known.pairAddress != primary && s.answeredAt.After(known.answeredAt):
			latest[s.path] = s
		}
	}
	paths := make([]PathState, 0, len(latest))
	for number, s := range latest {
		counts := &p.counts[number]
		paths = append(paths, PathState{
			Path: number, Local: s.port.Address(), Remote: s.remote, RTT: s.rtt.value(), Alive: s.works(now),
			First: counts.first.Load(), Repeated: counts.repeated.Load(), Copied: counts.copied.Load(),
		})
	}
	slices.SortFunc(paths, func(a, b PathState) int { return int(a.Path) - int(b.Path) })
	for i := range paths {
		if latest[paths[i].Path].pairAddress == primary {
			chosen := paths[i]
			copy(paths[1:i+1], paths[:i])
			paths[0] = chosen
		}
	}
	return paths
}

// tendPairs chooses the routes and then checks the pairs. Each check thus has an interval in which it is answered.
func (p *path) tendPairs(pairs *pairs, now time.Time) {
	if p.route.Load() == nil {
		return
	}
	p.chooseRoutes(pairs, now)
	check, remote := pairs.due(p.endpoint.mediaPorts())
	for _, pair := range check {
		if a := p.agents.of(pair.port); a != nil {
			a.Check(pair.remote, remote, checkPriority(pair.port.path), now)
		}
	}
}

// chooseRoutes sets the two routes to pairs that work.
func (p *path) chooseRoutes(pairs *pairs, now time.Time) {
	p.routing.Lock()
	defer p.routing.Unlock()
	if p.ended || p.route.Load() == nil {
		return
	}
	primary, second := pairs.step(p.route.Load().pair(), p.second.Load().pair(), now)
	p.reroute(primary)
	p.rerouteSecond(second)
}

// rerouteSecond sets the pair that copies are sent on. If the pair is invalid, there are no copies. The caller holds
// the mutex.
func (p *path) rerouteSecond(to pairAddress) {
	if p.second.Load().pair() == to {
		return
	}
	var second *peerRoute
	if to.valid() {
		second = p.newRoute(to)
	}
	p.set(p.route.Load(), second)
}

// leave replaces a port that is closed. Media that was sent through the port is sent to the same address through the
// new port, until another pair works.
func (p *path) leave(port, replacement *mediaPort) {
	if pairs := p.pairs.Load(); pairs != nil {
		pairs.drop(port)
	}
	p.agents.remove(port)
	p.routing.Lock()
	defer p.routing.Unlock()
	if p.second.Load().pair().port == port {
		p.rerouteSecond(pairAddress{})
	}
	if route := p.route.Load(); route.pair().port == port {
		p.reroute(pairAddress{replacement, route.address})
	}
}

// requested handles an authentic check of the remote peer, in the loop of the ICE agent. requested reports whether ICE
// must select the pair of the check, because media is sent on this pair.
func (p *path) requested(
	check *stun.Message, local, remote ice.Candidate, _ *ice.CandidatePair,
) (selects bool) {
	pairs := p.pairs.Load()
	if pairs == nil || !local.NetworkType().IsUDP() {
		return false
	}
	p.peer.try(placeICE, func() { selects = p.follow(pairs, check, local, remote) })
	return selects
}

// follow is requested for a peer with several pairs.
func (p *path) follow(pairs *pairs, check *stun.Message, local, remote ice.Candidate) (selects bool) {
	port := p.endpoint.portOf(local)
	if port == nil {
		return false
	}
	pair, number := pairAddress{port, icemux.AddressOf(remote)}, port.path
	if !pairs.trusting {
		var priority ice.PriorityAttr
		if priority.GetFrom(check) != nil {
			return false
		}
		var numbered bool
		if number, numbered = pathOf(uint32(priority)); !numbered {
			return false
		}
	}
	pairs.checked(pair, number, time.Now())
	return p.route.Load().pair() == pair && !pairs.isSelected(pair)
}

// The priorities of candidates have the numbers of the paths: the local preference of path n is 65,535 - n (RFC 8445
// section 5.1.2.1). A lower number is preferred.
const (
	hostPreference          = 126
	peerReflexivePreference = 110
	firstLocalPreference    = 65535
	// rtpComponent is 256 minus the component 1.
	rtpComponent = 255
)

// hostPriority returns the priority of the host candidate of a path.
func hostPriority(path uint8) uint32 {
	return hostPreference<<24 | (firstLocalPreference-uint32(path))<<8 | rtpComponent
}

// checkPriority returns the priority in the checks of a path (RFC 8445 section 7.1.1).
func checkPriority(path uint8) uint32 {
	return peerReflexivePreference<<24 | (firstLocalPreference-uint32(path))<<8 | rtpComponent
}

// pathOf returns the number of the path in a priority. ok is false if the priority has none.
func pathOf(priority uint32) (path uint8, ok bool) {
	number := firstLocalPreference - priority>>8&0xffff
	if number >= MaxPaths {
		return 0, false
	}
	return uint8(number), true
}

// addPorts adds a local candidate for each port of an endpoint with several ports. From now on addReplacement adds the
// candidates of other ports.
func (a *iceAgent) addPorts() error {
	a.adding.Lock()
	defer a.adding.Unlock()
	for _, port := range a.peer.endpoint.mediaPorts() {
		if err := a.addPort(port); err != nil {
			return err
		}
	}
	a.added = true
	return nil
}

// addReplacement adds a local candidate for a port that replaces another one. If the agent has not gathered yet,
// addPorts adds the candidate. If the agent has ended, it needs no candidate.
func (a *iceAgent) addReplacement(port *mediaPort) {
	a.adding.Lock()
	defer a.adding.Unlock()
	if a.added && a.peer.path.agents.of(port) == nil {
		_ = a.addPort(port)
	}
}

// addPort adds a local candidate for a port. The caller holds the mutex of adding.
func (a *iceAgent) addPort(port *mediaPort) error {
	ufrag, _, err := a.GetLocalUserCredentials()
	if err != nil {
		return fmt.Errorf("ICE credentials: %w", err)
	}
	address := port.Address()
	candidate, err := ice.NewCandidateHost(&ice.CandidateHostConfig{
		Network: "udp", Address: address.Addr().String(), Port: int(address.Port()), Component: ice.ComponentRTP,
		Priority: hostPriority(port.path),
	})
	if err != nil {
		return fmt.Errorf("candidate of %s: %w", address, err)
	}
	a.peer.path.agents.set(port, port.mux.Register(ufrag, portPeer{a, port}))
	conn, err := port.mux.GetConn(ufrag, net.UDPAddrFromAddrPort(address))
	if err != nil {
		return fmt.Errorf("candidate of %s: %w", address, err)
	}
	if err := a.AddVirtualCandidate(candidate, conn); err != nil {
		_ = conn.Close()
		return fmt.Errorf("candidate of %s: %w", address, err)
	}
	return nil
}

// portAgents are the entries of an ICE agent in the muxes of the ports. portAgents is safe for concurrent use.
type portAgents struct {
	mu     sync.Mutex
	ports  []*mediaPort
	agents []*icemux.Agent
}

// of returns the entry in the mux of a port, nil before the agent gathers.
func (l *portAgents) of(port *mediaPort) *icemux.Agent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.ports, port); i >= 0 {
		return l.agents[i]
	}
	return nil
}

func (l *portAgents) set(port *mediaPort, agent *icemux.Agent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.ports, port); i >= 0 {
		l.agents[i] = agent
		return
	}
	l.ports, l.agents = append(l.ports, port), append(l.agents, agent)
}

func (l *portAgents) remove(port *mediaPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.ports, port); i >= 0 {
		l.ports, l.agents = slices.Delete(l.ports, i, i+1), slices.Delete(l.agents, i, i+1)
	}
}

// queueCopy adds the packet of the given length, which ends the used bytes, to the packets that leave on the second
// route. The copies have runs of their own in the same buffer.
func (o *outbox) queueCopy(length int) {
	begin := o.used - length
	if n := len(o.copies); n > 0 && o.copiesEnd == begin {
		last := &o.copies[n-1]
		whole := len(last.Data)%last.Segment == 0
		if whole && length <= last.Segment && len(last.Data) < outboxRun*last.Segment {
			last.Data = o.buffer[begin-len(last.Data) : o.used]
			o.copiesEnd = o.used
			return
		}
	}
	o.copies = append(o.copies, udp.Message{Data: o.buffer[begin:o.used], Segment: length})
	o.copiesEnd = o.used
}

// flushCopies sends the copies, or hands them to the post, which receives the buffer later. The caller holds the mutex.
func (o *outbox) flushCopies(post *udp.Post) {
	if second, pairs := o.path.second.Load(), o.path.pairs.Load(); second != nil && pairs != nil {
		count := 0
		for i := range o.copies {
			o.copies[i].Peer = second.address
			count += o.copies[i].Count()
		}
		pairs.counts[second.path].copied.Add(uint64(count))
		if post != nil {
			post.Add(second.socket, o.copies, nil)
		} else {
			_ = second.socket.Send(o.copies)
		}
	}
	clear(o.copies)
	o.copies, o.copiesEnd = o.copies[:0], 0
}
