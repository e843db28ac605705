package entry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/placement"
	"github.com/volsfu/volsfu/internal/cluster/ticket"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// compareInterval is the interval at which the lists of clients are compared with the nodes, that of beats.
	// listInterval is the least time between two messages to a client.
	compareInterval = 200 * time.Millisecond
	listInterval    = time.Second
	// renewAfter is the age of a ticket after which a client gets another one: a client that has lost its node resumes
	// within minutes.
	renewAfter = ticket.Lifetime / 2
	// maxAlternatives is the number of nodes in a list. A client tries the nodes in turn, and one that lives is enough.
	maxAlternatives = 8
)

// lists are the latest lists of nodes that were sent to clients.
type lists struct {
	sessions map[string]list
	// nodes and rooms are the state of the latest lists: the nodes, and those of each room.
	nodes string
	rooms map[string]string
	// at is the time of the latest messages.
	at time.Time
}

// list is the latest list that was sent to the client of a session.
type list struct {
	// key is the list as keyOf.
	key string
	// sealed is the time of the client's latest ticket.
	sealed time.Time
}

func newLists() lists { return lists{sessions: make(map[string]list), rooms: make(map[string]string)} }

// run sends the message Nodes to clients until the Entry is closed.
func (e *Entry) run() {
	ticker := time.NewTicker(compareInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.closed:
			return
		case <-ticker.C:
			e.sendLists(time.Now())
			e.reportAddresses()
		}
	}
}

// sendLists sends changed alternatives to clients, and another ticket if the client's is old. If neither the nodes nor
// those of a client's room have changed, the client's list is not determined again.
func (e *Entry) sendLists(now time.Time) {
	e.mu.Lock()
	former := e.lists
	if now.Sub(former.at) < listInterval {
		e.mu.Unlock()
		return
	}
	// Welcome adds the lists of new clients meanwhile.
	former.sessions = maps.Clone(former.sessions)
	e.mu.Unlock()
	nodes, self := e.others(), e.options.View.Self()
	next := newLists()
	var text strings.Builder
	for _, n := range nodes {
		fmt.Fprintln(&text, n.Home, n.State, n.Draining, n.URL)
	}
	next.nodes = text.String()
	for _, c := range e.clients.Clients() {
		sent, known := former.sessions[c.Session]
		if !known {
			sent, known = e.listOf(c.Session)
		}
		if _, ok := next.rooms[c.Room]; !ok {
			having := e.options.View.NodesOf(c.Room)
			slices.Sort(having)
			next.rooms[c.Room] = strings.Join(having, " ")
		}
		changed := !known || next.nodes != former.nodes || next.rooms[c.Room] != former.rooms[c.Room]
		old := now.Sub(sent.sealed) > renewAfter
		if c.Moves && (changed || old) {
			m := &signal.Nodes{Nodes: e.alternatives(nodes, self, c.Room, c.Session)}
			latest := list{keyOf(m.Nodes), sent.sealed}
			if old {
				m.Secret, latest.sealed = e.renewed(now, c), now
			}
			if latest != sent {
				next.at = now
				if !c.Outbox.Send(m) {
					// The next step sends the list again.
					continue
				}
				sent = latest
			}
		}
		next.sessions[c.Session] = sent
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for session, l := range e.lists.sessions {
		_, handled := next.sessions[session]
		if _, known := former.sessions[session]; !handled && !known {
			next.sessions[session] = l
		}
	}
	e.lists = next
}

// listOf returns the latest list that was sent to a session.
func (e *Entry) listOf(session string) (l list, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, known = e.lists.sessions[session]
	return l, known
}

// renewed returns a client's ticket with a later end of validity, empty if the ticket is not valid.
func (e *Entry) renewed(now time.Time, c signalling.Client) string {
	t, err := e.options.Sealer.Open(c.Ticket, now)
	if err == nil || errors.Is(err, ticket.ErrExpired) {
		t.Expires = now.Add(ticket.Lifetime)
		var text string
		if text, err = e.options.Sealer.Seal(t, now); err == nil {
			return text
		}
	}
	e.log.Error("a client gets no further ticket", zap.String("session", c.Session), zap.Error(err))
	return ""
}

// alternatives returns the nodes on which a session of this node can continue: first those that should have the record
// of the session, then the nodes of this node's region, then the others in the ranking of the session.
func (e *Entry) alternatives(nodes []cluster.Node, self cluster.Node, room, session string) []signal.NodeAddress {
	suitable := make(map[string]cluster.Node, len(nodes))
	var near, far []string
	for _, n := range nodes {
		if (ways{moved: true}).check(n) != nil {
			continue
		}
		suitable[n.Home.Node] = n
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
		n, ok := suitable[name]
		if !ok || len(list) == maxAlternatives {
			continue
		}
		delete(suitable, name)
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
