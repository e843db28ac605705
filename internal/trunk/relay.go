package trunk

import (
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
)

// arrangeInterval is the interval at which the home improves the trees of its publications.
const arrangeInterval = 200 * time.Millisecond

// relay is the part of a publication of another node that this node passes on.
type relay struct {
	mirror *mirror
	// takes is the demand of the nodes that take from this node.
	takes map[string]*take
}

// changes are changes that a link has found and all links have to follow.
type changes struct {
	// demand has the mirrors whose demand has changed, states the states of publications that have changed.
	demand map[*mirror]struct{}
	states map[publication]stateSet
	// hops are those that have to be passed on.
	hops []passedHops
	// unsettled has the mirrors whose feeds have to be stepped.
	unsettled map[*mirror]struct{}
	// trees are the publications of this node whose trees may have to change. arranged is the time of the last
	// improvement of trees. failed is set if a node may have failed since.
	trees    map[publication]struct{}
	arranged time.Time
	failed   bool
}

// passedHops are hops of a mirror, with times by the clock of this node.
type passedHops struct {
	mirror *mirror
	hops   *hops
}

// keyAt returns the name by which messages of the trunk to a node name the mirror.
func (m *mirror) keyAt(node string) publication {
	p := m.publication
	if node != m.node {
		p.Home = m.node
	}
	return p
}

// mirrorOf returns the mirror that a message of a node names, nil if there is none.
func (c *catalog) mirrorOf(node string, p publication) *mirror {
	home := node
	if p.Home != "" {
		home, p.Home = p.Home, ""
	}
	return c.mirror(home, p)
}

// demand returns the demand of this node and of the nodes to which this node passes the mirror on: the union of the
// tiles, and the largest share of parity. demand returns nil before the first demand.
func (m *mirror) demand() *take {
	if m.passed == nil || len(m.passed.relay.takes) == 0 {
		return m.take
	}
	tiles := (len(m.tracks) + m.qualities - 1) / m.qualities
	qualities, near := make([]allocate.QualitySet, tiles), make([]bool, tiles)
	all := slices.Collect(maps.Values(m.passed.relay.takes))
	if m.take != nil {
		all = append(all, m.take)
	}
	union := &take{publication: m.publication}
	for _, t := range all {
		for tile, set := range sets(t.Tiles) {
			if tile < tiles {
				qualities[tile] |= set
			}
		}
		for tile, wanted := range t.Near {
			if tile < tiles {
				near[tile] = near[tile] || wanted
			}
		}
		union.Parity = max(union.Parity, t.Parity)
		union.Trace = union.Trace || t.Trace
	}
	union.Tiles, union.Near = lists(qualities), near
	return union
}

// takesNothing reports whether the demand has no track.
func (m *mirror) takesNothing() bool {
	t := m.demand()
	return t == nil || empty(sets(t.Tiles))
}

// The home's side.

// place follows the demand of the other node in the tree of a publication of this node.
func (l *link) place(pub *local, m *take, now time.Time) {
	t, wanted := l.origin.takes[m.publication], !empty(sets(m.Tiles)) || slices.Contains(m.Near, true)
	switch {
	case len(m.Path) > 0:
		if m.Refused != "" {
			pub.tree.refuse(l.node, m.Refused, m.Path, now)
		}
		pub.tree.confirm(l.node, l.region, m.Path, now)
	case len(m.Tiles) == 0:
		pub.tree.remove(l.node, now)
	case wanted || m.Refused != "":
		pub.tree.take(l.node, l.region, l.version >= relayVersion, m.Refused, now)
	}
	if m.Refused == "" || len(m.Path) > 0 {
		l.assign(m.publication, pub, t)
	} else if t.held {
		// The node has lost a parent. The home sends until another parent does.
		t.held = false
		l.origin.changed[m.publication] = struct{}{}
	}
	l.catalog.changes.arrange(m.publication)
	l.wake()
}

// arrange makes the host examine the tree of a publication.
func (c *changes) arrange(p publication) {
	c.trees[p], c.failed = struct{}{}, true
}

// assign makes the demand of the other node wait while a parent is to serve the node.
func (l *link) assign(p publication, pub *local, t *taken) {
	b := pub.tree.branches[l.node]
	held := b != nil && b.parent != "" && len(t.streams) == 0
	if t.held != held {
		t.held = held
		l.origin.changed[p] = struct{}{}
	}
}

// arrange improves the trees of this node's publications, and schedules the paths that have changed.
func (h *Host) arrange(now time.Time) {
	changes := &h.catalog.changes
	if !changes.failed && now.Sub(changes.arranged) < arrangeInterval {
		return
	}
	changes.failed, changes.arranged = false, now
	for p := range changes.trees {
		pub := h.catalog.publications[p]
		if pub == nil || pub.tree == nil || pub.tree.idle() {
			delete(changes.trees, p)
			continue
		}
		for _, node := range pub.tree.step(now) {
			if l := h.links[node]; l != nil && l.origin.takes[p] != nil {
				l.updates.add(p, stateParent)
				l.assign(p, pub, l.origin.takes[p])
				h.wake()
			}
		}
	}
}

// usable reports whether publications may be passed on to or from a node.
func (h *Host) usable(node string) bool {
	l := h.links[node]
	return l != nil && l.greeted && l.version >= relayVersion && !l.silence.silent
}

// The side of a node that passes a mirror on.

// passOn returns the publication for a demand of the other node for a mirror, nil if this node does not pass the mirror
// on to the other node.
func (l *link) passOn(m *take) *local {
	pub, mirror := l.catalog.publications[m.publication], l.catalog.mirrorOf(l.node, m.publication)
	if len(m.Tiles) == 0 || mirror == nil || !passesOn(m.Path, l.cfg.Node, l.node, mirror.feed.path) {
		if pub != nil {
			l.catalog.endPassing(pub, l.node)
			m.Tiles, m.Near, m.Trace = nil, nil, false
			l.origin.take(m)
		}
		if len(m.Path) > 0 {
			l.updates.add(m.publication, stateParent)
		}
		return nil
	}
	if pub == nil {
		pub = &local{
			offered: offered{mirror.qualities, make([]bool, len(mirror.tracks))}, tracks: mirror.tracks,
			rates: mirror.rates, gaveUp: mirror.gaveUp, relay: &relay{mirror: mirror, takes: map[string]*take{}},
		}
		for i, t := range mirror.tracks {
			pub.audio[i] = t != nil && t.Audio()
		}
		l.catalog.publications[m.publication], mirror.passed = pub, pub
	}
	if l.origin.publications[m.publication] == nil {
		l.origin.publish(m.publication, &pub.offered)
	}
	pub.relay.takes[l.node] = m
	l.catalog.changes.demand[mirror] = struct{}{}
	l.wake()
	return pub
}

// endPassing ends the demand of a node for a mirror that is passed on.
func (c *catalog) endPassing(pub *local, node string) {
	if pub.relay != nil && pub.relay.takes[node] != nil {
		delete(pub.relay.takes, node)
		c.changes.demand[pub.relay.mirror] = struct{}{}
	}
}

// endRelay ends the passing of a mirror that has ended. The nodes that take it return to the home.
func (h *Host) endRelay(m *mirror) {
	if m.passed == nil {
		return
	}
	p := m.keyAt(h.cfg.Node)
	delete(h.catalog.publications, p)
	delete(h.catalog.changes.demand, m)
	for _, l := range h.links {
		if m.passed.relay.takes[l.node] != nil {
			l.updates.add(p, stateParent)
		}
		l.origin.withdraw(p)
		l.updates.repeatRates(p)
	}
	m.passed = nil
}

// pass stores a state of a mirror for the nodes to which this node passes the mirror on.
func (l *link) pass(m *mirror, state stateSet) {
	if m.passed != nil {
		m.passed.rates, m.passed.gaveUp = m.rates, m.gaveUp
		l.catalog.changes.states[m.keyAt(l.cfg.Node)] |= state
		l.wake()
	}
}

// The side of a node that takes from a parent.

// feedFrom performs the actions of a mirror's feed.
func (h *Host) feedFrom(m *mirror, actions []feedAction) {
	if len(actions) == 0 {
		return
	}
	h.catalog.changes.unsettled[m] = struct{}{}
	for _, a := range actions {
		l := h.links[a.node]
		switch {
		case l == nil:
		case a.end:
			l.unmirror(m)
		case a.begin:
			l.mirror(m)
			l.take(m)
		case a.rebind:
			l.bindings.exchange(m, m.tracks)
			l.take(m)
		default:
			l.take(m)
		}
		h.wake()
	}
}

// assigned is a path that the home of a mirror has assigned, empty if a parent does not pass the mirror on.
type assigned struct {
	node   string
	mirror *mirror
	path   []string
}

// followParents follows what links have found about parents.
func (h *Host) followParents(now time.Time) {
	for _, l := range h.sorted() {
		found, bound := l.assigned, l.bindings.bound
		l.assigned, l.bindings.bound = nil, nil
		for _, a := range found {
			m := a.mirror
			if h.catalog.mirrors[mirrorKey{m.node, m.publication}] != m {
				continue
			}
			if len(a.path) == 0 {
				h.feedFrom(m, m.feed.refuse(a.node, now))
				continue
			}
			possible := h.usable(a.path[len(a.path)-1]) && !slices.ContainsFunc(a.path, func(node string) bool {
				return m.passed != nil && m.passed.relay.takes[node] != nil
			})
			h.feedFrom(m, m.feed.assign(a.path, possible, m.takesNothing(), now))
		}
		for _, m := range bound {
			m.feed.bound(l.node, now)
		}
	}
	changes := &h.catalog.changes
	for m := range changes.demand {
		delete(changes.demand, m)
		changes.unsettled[m] = struct{}{}
		for _, node := range m.feed.nodes() {
			if l := h.links[node]; l != nil {
				l.take(m)
				h.wake()
			}
		}
	}
	for _, q := range changes.hops {
		h.passHops(q)
	}
	changes.hops = nil
	for p, states := range changes.states {
		delete(changes.states, p)
		for _, l := range h.links {
			l.changed(p, states)
		}
		h.wake()
	}
	for m := range changes.unsettled {
		if l := h.links[m.feed.source]; l != nil && len(m.feed.formers) > 0 {
			l.bindings.succeed(m)
		}
		m.feed.follow(m.takesNothing(), func(source string) bool { return h.fresh(source, m) }, now)
		actions := m.feed.step(now, func(node string) bool { return h.carries(node, m) })
		if m.feed.settled() {
			delete(changes.unsettled, m)
		}
		h.feedFrom(m, actions)
	}
}

// passHops passes hops to the nodes that take the mirror from this node and want them.
func (h *Host) passHops(q passedHops) {
	if q.mirror.passed == nil {
		return
	}
	m := *q.hops
	m.publication = q.mirror.keyAt(h.cfg.Node)
	for node, t := range q.mirror.passed.relay.takes {
		if l := h.links[node]; l != nil && t.Trace {
			l.tracing.add(&m)
			h.wake()
		}
	}
}

// carries reports whether tracks of a mirror are bound to the streams of a node.
func (h *Host) carries(node string, m *mirror) bool {
	l := h.links[node]
	return l != nil && l.bindings.carries(m)
}

// fresh reports whether this node has no offer of a node for a mirror.
func (h *Host) fresh(node string, m *mirror) bool {
	l := h.links[node]
	return l != nil && l.taking.fresh(m.keyAt(node))
}

// lostNode follows the silence of a node, or the end of the trunk to a node. ended is set if the trunk has ended.
func (h *Host) lostNode(node string, ended bool, now time.Time) {
	h.catalog.changes.failed = true
	for p, pub := range h.catalog.publications {
		switch {
		case !ended:
		case pub.tree != nil:
			pub.tree.remove(node, now)
			h.catalog.changes.arrange(p)
		default:
			h.catalog.endPassing(pub, node)
		}
	}
	for _, m := range h.catalog.mirrors {
		h.feedFrom(m, m.feed.lost(node, now))
		if m.feed.source == m.node && !h.usable(m.node) {
			// The nodes that take the mirror from this node may reach the home.
			h.endRelay(m)
		}
	}
	h.wake()
}
