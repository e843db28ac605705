package entry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/placement"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// compareInterval is the interval at which the lists of clients are compared with the nodes, that of beats.
	// tellInterval is the least time between two messages to a client.
	compareInterval = 200 * time.Millisecond
	tellInterval    = time.Second
	// maxAlternatives is the number of nodes in a list. A client tries the nodes in turn, and one that lives is enough.
	maxAlternatives = 8
)

// told has the lists of nodes that clients were told, as keyOf.
type told struct {
	sessions map[string]string
	// nodes and rooms are the state of the latest lists: the nodes, and those of each room.
	nodes string
	rooms map[string]string
	// at is the time of the latest messages.
	at time.Time
}

func newTold() told { return told{sessions: make(map[string]string), rooms: make(map[string]string)} }

// run tells clients of changed alternatives until the context ends.
func (e *Entry) run(ctx context.Context) {
	ticker := time.NewTicker(compareInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.tell(time.Now())
		}
	}
}

// tell tells clients of changed alternatives. If neither the nodes nor those of a client's room have changed, the
// client's list is not determined again.
func (e *Entry) tell(now time.Time) {
	e.mu.Lock()
	former := e.told
	e.mu.Unlock()
	if now.Sub(former.at) < tellInterval {
		return
	}
	nodes, self := e.options.View.Nodes(), e.options.View.Self()
	next := newTold()
	for _, n := range nodes {
		next.nodes += fmt.Sprintln(n.Home, n.State, n.Draining, n.URL)
	}
	for _, c := range e.clients.Clients() {
		key, known := former.sessions[c.Session]
		if _, ok := next.rooms[c.Room]; !ok {
			having := e.options.View.NodesOf(c.Room)
			slices.Sort(having)
			next.rooms[c.Room] = strings.Join(having, " ")
		}
		if c.Moves && (!known || next.nodes != former.nodes || next.rooms[c.Room] != former.rooms[c.Room]) {
			list := e.alternatives(nodes, self, c.Room, c.Session)
			if changed := keyOf(list); !known || changed != key {
				key, next.at = changed, now
				c.Outbox.Send(&signal.Nodes{Nodes: list})
			}
		}
		next.sessions[c.Session] = key
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = next
}

// alternatives returns the nodes on which a session of this node can continue: first those that should have the record
// of the session, then the nodes of this node's region, then the others in the ranking of the session.
func (e *Entry) alternatives(nodes []cluster.Node, self cluster.Node, room, session string) []signal.NodeAddress {
	usable := make(map[string]cluster.Node, len(nodes))
	var near, far []string
	for _, n := range nodes {
		if n.State != cluster.Alive || n.Draining || n.URL == "" {
			continue
		}
		usable[n.Home.Node] = n
		if n.Region == self.Region {
			near = append(near, n.Home.Node)
		} else {
			far = append(far, n.Home.Node)
		}
	}
	names := slices.Concat(e.options.View.Keepers(self.Home.Node, room, session),
		placement.Rank(session, near), placement.Rank(session, far))
	list := []signal.NodeAddress{}
	for _, name := range names {
		n, ok := usable[name]
		if !ok || len(list) == maxAlternatives {
			continue
		}
		delete(usable, name)
		list = append(list, signal.NodeAddress{URL: n.URL, Region: n.Region})
	}
	return list
}

// keyOf returns a text that is equal for equal lists.
func keyOf(list []signal.NodeAddress) string {
	var key strings.Builder
	for _, n := range list {
		key.WriteString(n.URL + " " + n.Region + "\n")
	}
	return key.String()
}

// following returns the clients that follow the message Moved.
func following(clients []signalling.Client) []signalling.Client {
	return slices.DeleteFunc(clients, func(c signalling.Client) bool { return !c.Moves })
}
