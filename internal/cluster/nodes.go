package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// events are the events that the user of a Replica has not taken.
type events struct{ list []Event }

func (e *events) emit(event Event) { e.list = append(e.list, event) }

// Events returns the events since the last call.
func (e *events) Events() []Event {
	list := e.list
	e.list = nil
	return list
}

// nodes are this node and the others as it knows them.
type nodes struct {
	*events
	config Config
	self   Self
	// peers are the present incarnations of the other nodes, ordered the same in the order of names.
	peers   map[string]*peer
	ordered []*peer
	// former are earlier incarnations, which are dead.
	former []*peer
	// refused has the latest incarnation of each refused node.
	refused map[string]uint64
	// lost is set while no node beats.
	lost bool
	// shared are the names of the nodes that have a room with this one, nil if they must be computed.
	shared []string
	// regroupedRooms are rooms whose nodes have changed since the last Regrouped, regrouped is set if nodes have
	// appeared, died or returned.
	regroupedRooms map[string]bool
	regrouped      bool
}

// reorder sorts the nodes after one was added or removed.
func (n *nodes) reorder() {
	n.ordered = slices.SortedFunc(maps.Values(n.peers), func(a, b *peer) int {
		return cmp.Compare(a.home.Node, b.home.Node)
	})
}

func (n *nodes) home() Home { return Home{n.self.Name, n.self.Incarnation} }

// regroup notes that a node has appeared, died or returned.
func (n *nodes) regroup() { n.shared, n.regrouped = nil, true }

// regroupRoom notes that a node has entered or left a room.
func (n *nodes) regroupRoom(name string) {
	n.shared = nil
	n.regroupedRooms[name] = true
}

// Regrouped returns the rooms whose nodes have changed since the last call, and reports whether nodes have appeared,
// died or returned.
func (n *nodes) Regrouped() (rooms []string, nodes bool) {
	rooms, nodes = slices.Sorted(maps.Keys(n.regroupedRooms)), n.regrouped
	clear(n.regroupedRooms)
	n.regrouped = false
	return rooms, nodes
}

// Nodes returns the other nodes, in the order of names.
func (n *nodes) Nodes() []Node {
	nodes := make([]Node, 0, len(n.peers))
	for _, p := range n.ordered {
		if p.state != stopped {
			nodes = append(nodes, p.node())
		}
	}
	return nodes
}

// NodesOf returns the names of the other nodes that have a room and are not dead. This node need not have the room.
func (n *nodes) NodesOf(room string) []string {
	key := RoomKey(room)
	var names []string
	for _, p := range n.ordered {
		if p.beats() && p.has(room, key) {
			names = append(names, p.home.Node)
		}
	}
	return names
}

// Node returns another node that is not dead.
func (n *nodes) Node(name string) (Node, bool) {
	p := n.peers[name]
	if p == nil || !p.beats() {
		return Node{}, false
	}
	return p.node(), true
}

// postpone moves the times by which other nodes are judged by the lateness of a Step. Messages that arrived while this
// process did not run have not been read, so the time says nothing about the other nodes.
func (n *nodes) postpone(now time.Time, lateness time.Duration) {
	later := func(t time.Time) time.Time {
		if t = t.Add(lateness); t.After(now) {
			return now
		}
		return t
	}
	for _, p := range slices.Concat(n.ordered, n.former) {
		p.beat, p.received, p.deadSince = later(p.beat), later(p.received), later(p.deadSince)
	}
}

// TrunkClosed notes that there is no trunk to a node: it was closed since no room needs it. A trunk that failed is not
// closed but silent.
func (n *nodes) TrunkClosed(node string) {
	if p := n.peers[node]; p != nil {
		p.trunk = false
	}
}

// expired reports whether a suspected node is dead.
func (n *nodes) expired(now time.Time, p *peer) bool {
	switch {
	case p.trunk:
		return now.Sub(p.received) >= n.config.TrunkSilence && now.Sub(p.beat) >= n.config.Suspect
	case n.lost:
		return now.Sub(p.beat) >= n.config.Tombstone
	case now.Sub(p.beat) >= n.config.Silence:
		return true
	}
	votes, voters := 0, 0
	for _, other := range n.peers {
		if other != p && other.state == Alive {
			voters++
			if slices.Contains(other.latest.Suspects, p.home.Node) {
				votes++
			}
		}
	}
	return voters > 0 && votes >= min(2, voters)
}

// suspects returns the names of the nodes that this one suspects, for a beat.
func (n *nodes) suspects() []string {
	var names []string
	for _, p := range n.ordered {
		if (p.state == Suspected || p.state == Dead) && len(names) < maxSuspects {
			names = append(names, p.home.Node)
		}
	}
	return names
}

// refuse reports a node that this one cannot share rooms with, once per incarnation.
func (n *nodes) refuse(home Home, reason string) {
	if n.refused[home.Node] == home.Incarnation ||
		n.refused[home.Node] == 0 && len(n.refused) >= n.config.MaxNodes {
		return
	}
	n.refused[home.Node] = home.Incarnation
	n.emit(NodeRefused{home, reason})
}
