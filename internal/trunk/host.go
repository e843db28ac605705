package trunk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Place is the place that this package passes to Config.Guard.
const Place = "trunk"

const (
	// SilentAfter is the silence after which a node is reported as silent: five intervals of probes.
	SilentAfter = 500 * time.Millisecond
	// endAfter is the silence after which a trunk is closed.
	endAfter = 10 * time.Second
	// tickInterval is the interval of Notify while nothing arrives, probeInterval that of probes, fitInterval that of
	// decisions about masks. heardInterval is the minimum time between two events Heard.
	tickInterval  = 50 * time.Millisecond
	probeInterval = 100 * time.Millisecond
	fitInterval   = 100 * time.Millisecond
	heardInterval = 50 * time.Millisecond
	// minRedial and maxRedial bound the time between two attempts to dial. The time doubles with each attempt.
	minRedial = 100 * time.Millisecond
	maxRedial = 2 * time.Second
)

// Limits are the limits of the estimate of one lane. Nodes have 10 Gbit/s and more between them, and a taking node asks
// for what its receivers' estimates permit.
var Limits = congestion.Limits{Min: 2e6, Start: 200e6, Max: 10e9}

const (
	receiveBuffer = 8 << 20
	sendBuffer    = 8 << 20
	// sendPatience is the time for which sending waits for room in a send buffer, as for clients.
	sendPatience = 5 * time.Millisecond
)

// Config is the configuration of a Host.
type Config struct {
	// Node is the name of this node, Incarnation a number that is higher after each start.
	Node        string
	Incarnation uint64
	// Address is the local address for trunks.
	Address netip.AddrPort
	// Lanes is the number of lanes that this node dials, 1 to transport.MaxLanes. 0 is 1.
	Lanes int
	// Certificate returns this node's certificate, Verify the name in another node's certificate, or an error if the
	// certificate is not one of the cluster. Both are called by any goroutine.
	Certificate func() *tls.Certificate
	Verify      func(raw [][]byte) (node string, err error)
	// Guard confines panics to one trunk. Without a guard a panic ends the program.
	Guard *panics.Guard
	// Open returns the connection of a port in place of a UDP socket. It is for tests with emulated networks.
	Open func(address netip.AddrPort) (net.PacketConn, error)
}

// Host has the trunks of one node. One goroutine at a time calls its methods, except for Notify and Close.
type Host struct {
	cfg    Config
	engine *forward.Engine
	port   *transport.LanePort
	notify chan struct{}
	// context ends with the host. running are its goroutines.
	context context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	// inbox has what goroutines report.
	mu    sync.Mutex
	inbox []any

	// peers are the nodes to which trunks are wanted, links the trunks.
	peers        map[string]*peer
	links        map[string]*link
	publications map[publication]*local
	mirrors      map[mirrorName]*mirror
	events       []Event

	stats                     Stats
	untaken, wrongCertificate atomic.Uint64
}

// peer is a node to which a trunk is wanted.
type peer struct {
	address netip.AddrPort
	// dialing is set while a lane is being opened. redial is the time of the next attempt, backoff the time between
	// two.
	dialing bool
	redial  time.Time
	backoff time.Duration
}

// local is a publication of this node.
type local struct {
	qualities int
	tracks    []*track.Track
	audio     []bool
	rates     []volumetric.Bitrate
	gaveUp    []allocate.QualitySet
}

// mirrorName names a publication of another node, whichever node is its home.
type mirrorName struct {
	room string
	ref  volumetric.PublicationRef
}

// mirror is a publication of another node.
type mirror struct {
	node        string
	publication publication
	qualities   int
	tracks      []*track.Track
	// take is the last demand, nil before the first.
	take *take
}

// opened, ended and refused are reports in the inbox.
type (
	opened struct {
		lane *transport.Lane
		node string
	}
	ended struct {
		link   *link
		reason string
	}
	refused struct {
		lane   *transport.Lane
		node   string
		dialed bool
		reason string
	}
)

// Listen opens the port for trunks.
func Listen(cfg Config, engine *forward.Engine) (*Host, error) {
	cfg.Lanes = min(max(cfg.Lanes, 1), transport.MaxLanes)
	h := &Host{
		cfg: cfg, engine: engine, notify: make(chan struct{}, 1), peers: map[string]*peer{}, links: map[string]*link{},
		publications: map[publication]*local{}, mirrors: map[mirrorName]*mirror{},
	}
	port, err := h.open(cfg.Address, true)
	if err != nil {
		return nil, fmt.Errorf("listen for trunks: %w", err)
	}
	h.port = port
	h.context, h.cancel = context.WithCancel(context.Background())
	h.running.Go(func() { cfg.Guard.Try(Place, h.accept) })
	h.running.Go(h.tick)
	return h, nil
}

// open opens a port. A port that accepts has a socket for each core.
func (h *Host) open(address netip.AddrPort, accepts bool) (*transport.LanePort, error) {
	config := transport.LaneConfig{Certificate: h.cfg.Certificate, Verify: h.verify, Accepts: accepts}
	if h.cfg.Open != nil {
		conn, err := h.cfg.Open(address)
		if err != nil {
			return nil, err
		}
		port, err := udp.Attach(conn)
		if err != nil {
			return nil, err
		}
		return transport.NewLanePort(port, config), nil
	}
	sockets := 1
	if accepts {
		sockets = maxSockets()
	}
	port, err := udp.Listen(udp.Config{
		Address: address, Sockets: sockets, ReceiveBuffer: receiveBuffer, SendBuffer: sendBuffer,
		Patience: sendPatience,
	})
	if err != nil {
		return nil, err
	}
	return transport.NewLanePort(port, config), nil
}

// verify counts certificates that are not those of the cluster.
func (h *Host) verify(raw [][]byte) (string, error) {
	node, err := h.cfg.Verify(raw)
	if err != nil {
		h.wrongCertificate.Add(1)
	}
	return node, err
}

// Address returns the local address.
func (h *Host) Address() netip.AddrPort { return h.port.Address() }

// Notify is signalled when Step has work.
func (h *Host) Notify() <-chan struct{} { return h.notify }

// Close closes all trunks, and waits for the goroutines of the host.
func (h *Host) Close() {
	h.cancel()
	_ = h.port.Close()
	for _, l := range h.links {
		l.close()
	}
	for _, r := range h.takeInbox() {
		if r, ok := r.(opened); ok {
			r.lane.Close()
		}
	}
	h.running.Wait()
}

// report adds a report to the inbox.
func (h *Host) report(r any) {
	h.mu.Lock()
	h.inbox = append(h.inbox, r)
	h.mu.Unlock()
	h.wake()
}

func (h *Host) takeInbox() []any {
	h.mu.Lock()
	defer h.mu.Unlock()
	inbox := h.inbox
	h.inbox = nil
	return inbox
}

func (h *Host) wake() {
	select {
	case h.notify <- struct{}{}:
	default:
	}
}

// tick is the goroutine that signals Notify at regular times.
func (h *Host) tick() {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.wake()
		case <-h.context.Done():
			return
		}
	}
}

// accept is the goroutine that accepts lanes.
func (h *Host) accept() {
	for lane := range h.port.Accepted() {
		h.running.Go(func() {
			h.cfg.Guard.Try(Place, func() { h.handshake(lane, "", false) })
		})
	}
}

// handshake opens a lane and reports the result.
func (h *Host) handshake(lane *transport.Lane, node string, dialed bool) {
	name, err := lane.Handshake(h.context)
	if err == nil && dialed && name != node {
		err = fmt.Errorf("the certificate is that of node %s, expected node %s", name, node)
	}
	if err == nil && name == h.cfg.Node {
		err = errors.New("the certificate is that of this node")
	}
	if err != nil {
		lane.Close()
		h.report(refused{lane, node, dialed, err.Error()})
		return
	}
	h.report(opened{lane, name})
	if h.context.Err() != nil {
		// Close may have emptied the inbox before the report.
		lane.Close()
	}
}

// Connect makes the host keep a trunk to a node. Of two nodes the one with the smaller name dials.
func (h *Host) Connect(node string, to netip.AddrPort) {
	if node == h.cfg.Node {
		return
	}
	if p := h.peers[node]; p != nil {
		if p.address != to {
			p.address, p.redial, p.backoff = to, time.Time{}, minRedial
		}
		return
	}
	h.peers[node] = &peer{address: to, backoff: minRedial}
	h.wake()
}

// Disconnect closes the trunk to a node, and does not open another.
func (h *Host) Disconnect(node string) {
	delete(h.peers, node)
	if l := h.links[node]; l != nil {
		h.unlink(l, "closed by this node")
	}
	h.wake()
}

// dial begins to open the lanes that are missing.
func (h *Host) dial(now time.Time) {
	for node, p := range h.peers {
		if node < h.cfg.Node || p.dialing || now.Before(p.redial) {
			continue
		}
		number := 0
		if l := h.links[node]; l != nil {
			if number = l.missing(min(h.cfg.Lanes, l.offeredLanes)); number < 0 {
				continue
			}
		}
		p.redial = now.Add(p.backoff)
		p.backoff = min(2*p.backoff, maxRedial)
		port, err := h.open(netip.AddrPortFrom(h.cfg.Address.Addr(), 0), false)
		if err != nil {
			h.event(Refused{p.address, err.Error()})
			continue
		}
		lane, err := port.Dial(p.address, number)
		if err != nil {
			_ = port.Close()
			continue
		}
		p.dialing = true
		h.running.Go(func() {
			// The port belongs to the lane.
			<-lane.Done()
			_ = port.Close()
		})
		h.running.Go(func() { h.cfg.Guard.Try(Place, func() { h.handshake(lane, node, true) }) })
	}
}

func (h *Host) event(e Event) { h.events = append(h.events, e) }

// Step handles what has arrived, and returns the events since the last call in their order.
func (h *Host) Step(now time.Time) []Event {
	for _, r := range h.takeInbox() {
		switch r := r.(type) {
		case opened:
			h.opened(r, now)
		case ended:
			if h.links[r.link.node] == r.link {
				h.unlink(r.link, r.reason)
			}
		case refused:
			h.stats.Refused++
			if p := h.peers[r.node]; r.dialed && p != nil {
				p.dialing = false
			}
			h.event(Refused{r.lane.Remote(), r.reason})
		}
	}
	for _, l := range h.sorted() {
		if reason := l.step(now); reason != "" {
			h.unlink(l, reason)
		}
	}
	h.dial(now)
	events := h.events
	h.events = nil
	return events
}

// sorted returns the trunks by name, so that events have a fixed order.
func (h *Host) sorted() []*link {
	names := slices.Sorted(maps.Keys(h.links))
	links := make([]*link, len(names))
	for i, name := range names {
		links[i] = h.links[name]
	}
	return links
}

// opened adds a lane to the trunk to a node. Another first lane replaces the trunk: the other node has restarted, or
// has closed its side.
func (h *Host) opened(r opened, now time.Time) {
	if p := h.peers[r.node]; p != nil && r.node > h.cfg.Node {
		p.dialing = false
	}
	l := h.links[r.node]
	if r.lane.Number() == 0 {
		if l != nil {
			h.unlink(l, "replaced by another trunk")
		}
		l = newLink(h, r.node, now)
		h.links[r.node] = l
	}
	if l == nil || !l.add(r.lane) {
		r.lane.Close()
	}
}

// unlink ends a trunk.
func (h *Host) unlink(l *link, reason string) {
	delete(h.links, l.node)
	l.close()
	if l.greeted {
		h.stats.Closed++
		h.event(Unlinked{l.node, l.incarnation, reason})
	}
}

// Offer adds a publication of this node, with a track for each tile and quality, nil if there is none. Nodes may take
// it from now on.
func (h *Host) Offer(
	room string, ref volumetric.PublicationRef, id uint64, qualities int, tracks []*track.Track,
) {
	p := publicationOf(room, ref, id)
	pub := &local{qualities: max(qualities, 1), tracks: tracks, audio: make([]bool, len(tracks))}
	for i, t := range tracks {
		pub.audio[i] = t != nil && t.Audio()
	}
	h.publications[p] = pub
	for _, l := range h.links {
		l.origin.publish(p, pub.qualities, pub.audio)
	}
	h.wake()
}

// Withdraw removes a publication of this node.
func (h *Host) Withdraw(room string, ref volumetric.PublicationRef, id uint64) {
	p := publicationOf(room, ref, id)
	delete(h.publications, p)
	for _, l := range h.links {
		l.origin.withdraw(p)
		delete(l.told, p)
	}
	h.wake()
}

// SetRates sets the rates of the tracks of a publication, for the nodes that take it.
func (h *Host) SetRates(room string, ref volumetric.PublicationRef, id uint64, rates []volumetric.Bitrate) {
	p := publicationOf(room, ref, id)
	if pub := h.publications[p]; pub != nil {
		pub.rates = rates
		h.dirty(p, dirtyRates)
	}
}

// SetGaveUp sets the qualities that a publisher has given up, for the nodes that take its publication.
func (h *Host) SetGaveUp(room string, ref volumetric.PublicationRef, id uint64, tiles []allocate.QualitySet) {
	p := publicationOf(room, ref, id)
	if pub := h.publications[p]; pub != nil {
		pub.gaveUp = tiles
		h.dirty(p, dirtyGaveUp)
	}
}

// dirty schedules a message to all nodes that take a publication.
func (h *Host) dirty(p publication, what dirt) {
	for _, l := range h.links {
		if l.origin.takes[p] != nil {
			l.dirty[p] |= what
		}
	}
	h.wake()
}

// Mirror adds a publication of another node with its tracks, which are bound when they arrive. A publication that moves
// to another node, or has another ID, keeps its tracks.
func (h *Host) Mirror(
	node, room string, ref volumetric.PublicationRef, id uint64, qualities int, tracks []*track.Track,
) {
	name := mirrorName{room, ref}
	if m := h.mirrors[name]; m != nil {
		h.Unmirror(m.node, room, ref, m.publication.ID)
	}
	m := &mirror{node: node, publication: publicationOf(room, ref, id), qualities: max(qualities, 1), tracks: tracks}
	h.mirrors[name] = m
	if l := h.links[node]; l != nil {
		l.taking.mirror(m.publication, m.qualities, len(tracks))
	}
}

// Unmirror removes a publication of another node. Its demand ends, and its tracks are unbound.
func (h *Host) Unmirror(node, room string, ref volumetric.PublicationRef, id uint64) {
	name := mirrorName{room, ref}
	m := h.mirrors[name]
	if m == nil || m.node != node || m.publication.ID != id {
		return
	}
	if l := h.links[node]; l != nil {
		if m.take != nil {
			l.ended[m.publication] = struct{}{}
			l.dirty[m.publication] |= dirtyTake
		}
		l.unbindAll(m)
		l.taking.remove(m.publication)
		delete(l.waiting, m.publication)
	}
	delete(h.mirrors, name)
	h.wake()
}

// Take sets the whole demand for a mirrored publication: the qualities of each tile, the tiles that are wanted soon,
// and the share of parity. It is sent again when the trunk returns.
func (h *Host) Take(node, room string, ref volumetric.PublicationRef, id uint64, tiles []allocate.QualitySet,
	near []bool, parity float64) {
	m := h.mirrors[mirrorName{room, ref}]
	if m == nil || m.node != node || m.publication.ID != id {
		return
	}
	m.take = &take{publication: m.publication, Tiles: lists(tiles), Near: near, Parity: parity}
	if l := h.links[node]; l != nil {
		l.taking.demand(m.publication, tiles)
		l.dirty[m.publication] |= dirtyTake
	}
	h.wake()
}

// Send sends a payload to a node. Payloads of one trunk arrive in order. Send reports false if there is no trunk, or
// above the limits: MaxPayload bytes, sendRate payloads per second, maxUnsent bytes that wait.
func (h *Host) Send(node string, payload []byte) bool {
	l := h.links[node]
	if l == nil || !l.greeted {
		return false
	}
	if len(payload) > MaxPayload || !l.sends.Take(time.Now()) || l.unsent() > maxUnsent ||
		!l.send(&message{Payload: payload}) {
		h.stats.Limited++
		return false
	}
	return true
}

// Links returns the state of all trunks.
func (h *Host) Links() []LinkState {
	var states []LinkState
	for _, l := range h.sorted() {
		if l.greeted {
			states = append(states, l.state(time.Now()))
		}
	}
	return states
}

// Stats returns the counters.
func (h *Host) Stats() Stats {
	s := h.stats
	s.WrongCertificate, s.Untaken, s.Ignored = h.wrongCertificate.Load(), h.untaken.Load(), h.port.Ignored()
	for _, l := range h.links {
		if l.greeted {
			s.Links++
		}
		for _, t := range l.origin.takes {
			s.Masked += len(t.masked)
		}
	}
	return s
}

func publicationOf(room string, ref volumetric.PublicationRef, id uint64) publication {
	return publication{Room: room, Participant: ref.Participant, Publication: ref.Publication, ID: id}
}
