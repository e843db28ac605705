package member

import (
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/session"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
)

// directory is the state of the cluster: the nodes, the participants of rooms, and the records of sessions. The
// exported methods are safe for concurrent use. The goroutine of the Member alone changes the state.
type directory struct {
	// node is the name of this node.
	node string
	// mu guards the rest. replica and sessions are nil before Serve.
	mu       sync.RWMutex
	replica  *cluster.Replica
	sessions *session.Store
	// draining is set if this node drains: it then keeps no records.
	draining bool
}

// NodesOf returns the names of the nodes that have a room and are not dead, this node included.
func (d *directory) NodesOf(room string) []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.replica == nil {
		return nil
	}
	nodes := d.replica.NodesOf(room)
	if d.replica.Has(room) {
		nodes = append(nodes, d.node)
	}
	return nodes
}

// Session returns the home of a session and its latest state. If this node has the room but no record, the home and the
// epoch are those of the participant, and the state is empty. Session returns false for sessions that this node does
// not know and for those that have ended.
func (d *directory) Session(room, session string) (cluster.Home, roomevent.SessionState, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.replica == nil {
		return cluster.Home{}, roomevent.SessionState{}, false
	}
	home, record, found := d.sessions.Get(session)
	if found && record.Room != room {
		found = false
	}
	state := roomevent.SessionState{
		Identity: record.Identity, Session: session, Epoch: record.Epoch, State: record.State,
	}
	if !found {
		state = roomevent.SessionState{Session: session}
	}
	if claim, known := d.replica.Claim(room, session); known && (!found || claim.Participant.Epoch >= record.Epoch) {
		if !found || claim.Home != home {
			home = claim.Home
		}
		state.Identity, state.Epoch = claim.Participant.Identity, claim.Participant.Epoch
		found = true
	}
	return home, state, found
}

// Keepers returns the names of the nodes that keep the record of a session of a home, this node included: the nodes
// that have the room and the first two in the ranking of the session, without the home and without nodes that drain or
// do not answer.
func (d *directory) Keepers(home, room, session string) []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.replica == nil {
		return nil
	}
	return d.keepers(home, room, session)
}

// keepers is Keepers. The caller holds the mutex.
func (d *directory) keepers(home, room, id string) []string {
	return d.keepersAmong(d.candidates(home), home, room, id)
}

// candidates returns the other nodes that may keep records of a home: those that are alive and do not drain.
func (d *directory) candidates(home string) (nodes []string) {
	for _, n := range d.replica.Nodes() {
		if n.State == cluster.Alive && !n.Draining && n.Home.Node != home {
			nodes = append(nodes, n.Home.Node)
		}
	}
	return nodes
}

// keepersAmong is keepers among the candidates of the home.
func (d *directory) keepersAmong(nodes []string, home, room, id string) []string {
	inRoom := slices.DeleteFunc(d.replica.NodesOf(room), func(name string) bool {
		return !slices.Contains(nodes, name)
	})
	if home != d.node && !d.draining {
		nodes = append(slices.Clip(nodes), d.node)
		if d.replica.Has(room) {
			inRoom = append(inRoom, d.node)
		}
	}
	return session.Keepers(id, inRoom, nodes)
}

// keepersOfOwn returns a function that returns the keepers of sessions of this node. The candidates are the same for
// all sessions of a step.
func (d *directory) keepersOfOwn() func(room, session string) []string {
	var nodes []string
	known := false
	return func(room, session string) []string {
		if !known {
			nodes, known = d.candidates(d.node), true
		}
		return d.keepersAmong(nodes, d.node, room, session)
	}
}

// sendSessions queues records of sessions for their keepers.
func (d *directory) sendSessions(now time.Time) {
	rooms, nodes := d.replica.Regrouped()
	if nodes {
		d.sessions.Check()
	} else {
		d.sessions.CheckRooms(rooms)
	}
	for _, s := range d.sessions.Step(now, d.keepersOfOwn()) {
		d.replica.SendSession(s.Nodes, s.Record)
	}
}
