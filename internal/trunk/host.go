package trunk

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// processorsPerLane is the number of processors for which a trunk has a lane: the packets of a lane are received by one
// goroutine, and each packet costs as much time again at receivers.
const processorsPerLane = 2

// maxUnsent is the number of bytes waiting in SCTP above which payloads are refused. It is less than maxUnsentState, so
// that payloads do not keep the demand from leaving.
const maxUnsent = 256 << 10

// Errors of Host.Send.
var (
	ErrUnlinked = errors.New("there is no trunk to the node")
	ErrSize     = errors.New("invalid size of a payload")
	ErrRate     = errors.New("too many payloads per second")
	ErrBacklog  = errors.New("too many bytes wait to be sent")
)

// Host has the trunks of one node. One goroutine at a time calls its methods, except for Notify and Address.
type Host struct {
	*services
	connector *connector
	catalog   *catalog
	links     map[string]*link
	stats     Stats
	// now is the time of the last Step.
	now time.Time
	// pending are events since the last Step.
	pending []Event
}

// Listen opens the port for trunks.
func Listen(cfg Config, engine *forward.Engine) (*Host, error) {
	if cfg.Lanes == 0 {
		cfg.Lanes = runtime.GOMAXPROCS(0) / processorsPerLane
	}
	cfg.Lanes = min(max(cfg.Lanes, 1), transport.MaxLanes)
	cfg.Fanout = max(cmp.Or(cfg.Fanout, DefaultFanout), 1)
	s := &services{cfg: cfg, engine: engine, notify: make(chan struct{}, 1)}
	c, err := listen(s)
	if err != nil {
		return nil, err
	}
	h := &Host{services: s, connector: c, catalog: newCatalog(), links: map[string]*link{}, now: time.Now()}
	s.running.Go(h.tick)
	return h, nil
}

// Address returns the local address.
func (h *Host) Address() netip.AddrPort { return h.connector.address }

// Notify is signalled when Step has work.
func (h *Host) Notify() <-chan struct{} { return h.notify }

// tick is the goroutine that signals Notify at regular times.
func (h *Host) tick() {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.wake()
		case <-h.connector.context.Done():
			return
		}
	}
}

// Close closes all trunks, and waits for the goroutines of the host.
func (h *Host) Close() {
	h.connector.close()
	for _, l := range h.links {
		l.close()
	}
	for _, r := range h.reports() {
		if r, ok := r.(opened); ok {
			r.lane.Close()
		}
	}
	h.running.Wait()
}

// Connect makes the host keep a trunk to a node. Of two nodes the one with the smaller name dials. If the trunk is kept
// already, Connect only sets the address of the next attempt.
func (h *Host) Connect(node string, to netip.AddrPort) {
	if node != h.cfg.Node {
		h.connector.connect(node, to)
		h.wake()
	}
}

// Disconnect closes the trunk to a node, and does not open another. A node with a smaller name may open another.
func (h *Host) Disconnect(node string) {
	h.connector.disconnect(node)
	if l := h.links[node]; l != nil {
		h.unlink(l, "closed by this node")
	}
	h.wake()
}

// Step handles what has arrived, and returns the events since the last call in their order.
func (h *Host) Step(now time.Time) []Event {
	if pause := now.Sub(h.now); pause > pauseAfter {
		for m := range h.catalog.changes.unsettled {
			m.feed.pause(pause)
		}
	}
	h.now = now
	for _, r := range h.reports() {
		switch r := r.(type) {
		case opened:
			h.opened(r, now)
		case ended:
			if h.links[r.link.node] == r.link {
				h.unlink(r.link, r.reason)
			}
		case refused:
			h.add(h.connector.failed(r, now))
		case portFailed:
			h.add(h.connector.portFailed(r))
		}
	}
	for _, l := range h.sorted() {
		h.step(l, now)
	}
	h.followParents(now)
	h.arrange(now)
	h.add(h.connector.reopen(now))
	h.add(h.connector.dial(now, h.missing))
	events := h.pending
	h.pending = nil
	return events
}

// step steps a trunk. A panic ends the trunk.
func (h *Host) step(l *link, now time.Time) {
	reason, greeted, silent := "", l.greeted, l.silence.silent
	if !h.cfg.Guard.Try(Place, func() { reason = l.step(now) }) {
		reason = "a panic while a control message was processed"
	}
	if l.greeted && !greeted {
		h.stats.Opened++
	}
	if silent && !l.silence.silent {
		// The node has not restarted.
		h.connector.abandon(l.node)
	}
	if l.greeted && !l.lasted && now.Sub(l.lanes.permit.began) >= maxRedial {
		l.lasted = true
		h.connector.lasted(l.node)
	}
	h.collect(l)
	if reason != "" {
		h.unlink(l, reason)
	} else if l.silence.silent && !silent {
		h.lostNode(l.node, false, now)
	}
}

// collect adds the events of a trunk to those of the host.
func (h *Host) collect(l *link) {
	h.add(l.events)
	l.events = nil
}

func (h *Host) add(events []Event) { h.pending = append(h.pending, events...) }

// sorted returns the trunks by name, so that events have a fixed order.
func (h *Host) sorted() []*link {
	links := make([]*link, 0, len(h.links))
	for _, name := range slices.Sorted(maps.Keys(h.links)) {
		links = append(links, h.links[name])
	}
	return links
}

// missing returns the number of the next lane to a node, -1 if none is missing.
func (h *Host) missing(node string) int {
	if l := h.links[node]; l != nil {
		return l.wants()
	}
	return 0
}

// opened adds a lane to the trunk to a node. Another first lane replaces the trunk: the other node has restarted, or
// has closed its side.
func (h *Host) opened(r opened, now time.Time) {
	if !h.connector.accepts(r.attempt) {
		r.lane.Close()
		return
	}
	l := h.links[r.node]
	if r.lane.Number() == 0 {
		if l != nil {
			h.unlink(l, "replaced by another trunk")
		}
		l = newLink(h.services, h.catalog, r.node, now)
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
	l.countPast(&h.stats)
	h.collect(l)
	h.lostNode(l.node, true, h.now)
	if l.greeted {
		h.stats.Closed++
		h.add([]Event{Unlinked{l.node, l.incarnation, reason}})
	}
}

// Offer adds a publication of this node, with a track for each tile and quality, nil if there is none. Nodes may take
// the publication.
func (h *Host) Offer(
	room string, ref volumetric.PublicationRef, id uint64, qualities int, tracks []*track.Track,
) {
	p := publicationOf(room, ref, id)
	pub := &local{offered: offered{max(qualities, 1), make([]bool, len(tracks))}, tracks: tracks}
	for i, t := range tracks {
		pub.audio[i] = t != nil && t.Audio()
	}
	if former := h.catalog.publications[p]; former != nil {
		pub.tree = former.tree
	} else {
		pub.tree = newTree(h.cfg.Fanout, h.cfg.Node, h.cfg.Region, p.Room+"\x00"+p.Participant+"\x00"+p.Publication,
			h.usable)
	}
	h.catalog.publications[p] = pub
	for _, l := range h.sorted() {
		l.origin.publish(p, &pub.offered)
		if t := l.origin.takes[p]; t != nil && !empty(t.tiles) {
			pub.tree.take(l.node, l.region, l.version >= relayVersion, "", h.now)
			l.assign(p, pub, t)
		}
	}
	h.catalog.changes.arrange(p)
	h.wake()
}

// Withdraw removes a publication of this node.
func (h *Host) Withdraw(room string, ref volumetric.PublicationRef, id uint64) {
	p := publicationOf(room, ref, id)
	delete(h.catalog.publications, p)
	for _, l := range h.links {
		l.origin.withdraw(p)
		l.updates.repeatRates(p)
	}
	h.wake()
}

// SetRates sets the rates of the tracks of a publication, for the nodes that take it.
func (h *Host) SetRates(room string, ref volumetric.PublicationRef, id uint64, rates []volumetric.Bitrate) {
	h.change(publicationOf(room, ref, id), stateRates, func(pub *local) { pub.rates = rates })
}

// SetGaveUp sets the qualities that a publisher has given up, for the nodes that take its publication.
func (h *Host) SetGaveUp(room string, ref volumetric.PublicationRef, id uint64, tiles []allocate.QualitySet) {
	h.change(publicationOf(room, ref, id), stateGaveUp, func(pub *local) { pub.gaveUp = tiles })
}

// change changes a publication of this node, and schedules a message to the nodes that take it.
func (h *Host) change(p publication, state stateSet, f func(*local)) {
	pub := h.catalog.publications[p]
	if pub == nil {
		return
	}
	f(pub)
	for _, l := range h.links {
		l.changed(p, state)
	}
	h.wake()
}

// Mirror adds a publication of another node with its tracks, which are bound when they arrive. If the publication is
// mirrored already, its streams are bound to the given tracks, and its demand remains. The same tracks may have several
// mirrors, of other nodes or with other IDs, as while a publisher moves: the tracks are bound to the last one whose
// packets arrive. Each has no demand until Take.
func (h *Host) Mirror(
	node, room string, ref volumetric.PublicationRef, id uint64, qualities int, tracks []*track.Track,
) {
	p, l, qualities := publicationOf(room, ref, id), h.links[node], max(qualities, 1)
	if m := h.catalog.mirror(node, p); m != nil {
		if m.qualities == qualities && len(m.tracks) == len(tracks) {
			h.exchange(m, tracks)
			return
		}
		h.Unmirror(node, room, ref, id)
	}
	h.catalog.numbered++
	m := &mirror{
		number: h.catalog.numbered, node: node, publication: p, qualities: qualities, tracks: tracks,
		feed: newFeed(h.cfg.Node, node),
	}
	h.catalog.mirrors[mirrorKey{node, p}] = m
	if l != nil {
		l.mirror(m)
	}
}

// Unmirror removes a publication of another node. Its demand ends, and its tracks are unbound.
func (h *Host) Unmirror(node, room string, ref volumetric.PublicationRef, id uint64) {
	m := h.catalog.mirror(node, publicationOf(room, ref, id))
	if m == nil {
		return
	}
	h.endRelay(m)
	for _, l := range h.links {
		if l.node == node || m.feed.takes(l.node) {
			l.unmirror(m)
		}
	}
	delete(h.catalog.mirrors, mirrorKey{node, m.publication})
	delete(h.catalog.changes.unsettled, m)
	h.wake()
}

// exchange replaces the tracks of a mirror.
func (h *Host) exchange(m *mirror, tracks []*track.Track) {
	same := slices.Equal(m.tracks, tracks)
	for _, node := range h.sources(m) {
		if l := h.links[node]; l != nil {
			l.bindings.exchange(m, tracks)
		}
	}
	m.tracks = tracks
	if m.passed == nil || same {
		return
	}
	m.passed.tracks = tracks
	for _, l := range h.links {
		l.origin.reselect(m.keyAt(h.cfg.Node))
	}
	h.wake()
}

// sources returns the nodes from which this node takes a mirror, first those whose streams carry its tracks. When other
// tracks are bound in this order, the streams of the others wait for a frame to take over at.
func (h *Host) sources(m *mirror) []string {
	var carrying, others []string
	for _, node := range m.feed.nodes() {
		if h.carries(node, m) {
			carrying = append(carrying, node)
		} else {
			others = append(others, node)
		}
	}
	return append(carrying, others...)
}

// Demand is the whole demand of this node for a mirrored publication.
type Demand struct {
	// Tiles has the qualities of each tile, Near the tiles that are wanted soon.
	Tiles []allocate.QualitySet
	Near  []bool
	// Parity is the share of parity.
	Parity float64
	// Trace is set if the times of the frames in other nodes are wanted, as events Relayed.
	Trace bool
}

// Take sets the demand for a mirrored publication. The demand is sent to each further trunk to the node.
func (h *Host) Take(node, room string, ref volumetric.PublicationRef, id uint64, d Demand) {
	m := h.catalog.mirror(node, publicationOf(room, ref, id))
	if m == nil {
		return
	}
	m.take = &take{publication: m.publication, Tiles: lists(d.Tiles), Near: d.Near, Parity: d.Parity, Trace: d.Trace}
	h.catalog.changes.unsettled[m] = struct{}{}
	for _, n := range m.feed.nodes() {
		if l := h.links[n]; l != nil {
			l.take(m)
		}
	}
	h.wake()
}

// Send sends a payload to a node. Payloads of one trunk arrive in order. The error wraps ErrUnlinked, ErrSize (the
// limits are 1 and MaxPayload bytes), ErrRate (above sendRate) or ErrBacklog (above maxUnsent).
func (h *Host) Send(node string, payload []byte) error {
	l := h.links[node]
	switch {
	case l == nil || !l.greeted:
		h.stats.Unlinked++
		return fmt.Errorf("payload for node %s: %w", node, ErrUnlinked)
	case len(payload) == 0 || len(payload) > MaxPayload:
		h.stats.TooLarge++
		return fmt.Errorf("payload for node %s: %w: %d bytes, expected 1 to %d", node, ErrSize, len(payload),
			MaxPayload)
	case !l.sends.Take(h.now):
		h.stats.TooMany++
		return fmt.Errorf("payload for node %s: %w: the limit is %d", node, ErrRate, sendRate.PerSecond)
	case l.control.unsent() > maxUnsent:
		h.stats.Unsent++
		return fmt.Errorf("payload for node %s: %w: the limit is %d", node, ErrBacklog, maxUnsent)
	}
	if err := l.control.send(&message{Payload: payload}); err != nil {
		h.stats.Unsent++
		return fmt.Errorf("payload for node %s: %w: %w", node, ErrUnlinked, err)
	}
	return nil
}

// Links returns the state of all trunks.
func (h *Host) Links() []LinkState {
	var states []LinkState
	for _, l := range h.sorted() {
		if l.greeted {
			states = append(states, l.state(h.now))
		}
	}
	return states
}

// Stats returns the counters.
func (h *Host) Stats() Stats {
	s := h.stats
	s.Refused, s.WrongCertificate = h.connector.refused, h.connector.wrongCertificate.Load()
	s.Ignored = h.connector.datagramsIgnored()
	s.Mirrors = len(h.catalog.mirrors)
	for _, pub := range h.catalog.publications {
		switch {
		case pub.relay == nil:
			s.Publications++
			s.Copies = max(s.Copies, pub.tree.copies())
		case len(pub.relay.takes) > 0:
			s.Passed++
		}
	}
	for _, m := range h.catalog.mirrors {
		if m.feed.source != m.node {
			s.Fed++
		}
	}
	for _, l := range h.links {
		l.count(&s)
	}
	return s
}
