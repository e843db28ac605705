package entry

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/placement"
)

// ErrNode is wrapped with the name of a node to which no client can be sent, and the reason.
var ErrNode = errors.New("unsuitable node")

// ways are the ways of a client to another node.
type ways struct {
	// moved: the client follows the message Moved. proxied: this node may proxy the client's websocket.
	moved, proxied bool
}

// check returns an error that wraps ErrNode if clients cannot be sent to another node.
func (w ways) check(n cluster.Node) error {
	switch {
	case n.State != cluster.Alive:
		// A client that has lost a suspected node would not reach that node.
		return fmt.Errorf("%w: %q does not answer", ErrNode, n.Home.Node)
	case n.Draining:
		return fmt.Errorf("%w: %q drains", ErrNode, n.Home.Node)
	case !(w.moved && n.URL != "") && !(w.proxied && n.Proxy != ""):
		return fmt.Errorf("%w: %q has no address for clients", ErrNode, n.Home.Node)
	}
	return nil
}

// self returns this node. The cluster learns of a drain later than Entry.
func (e *Entry) self() cluster.Node {
	self := e.options.View.Self()
	self.Draining = self.Draining || e.draining.Load()
	return self
}

// others returns the other nodes. A node whose address for clients is that of another node, too, has none: the address
// leads to any of them.
func (e *Entry) others() []cluster.Node {
	nodes := slices.Clone(e.options.View.Nodes())
	owners := make(map[string]int, len(nodes)+1)
	owners[e.options.View.Self().URL]++
	for _, n := range nodes {
		if n.State != cluster.Dead {
			owners[n.URL]++
		}
	}
	for i := range nodes {
		if owners[nodes[i].URL] > 1 {
			nodes[i].URL = ""
		}
	}
	return nodes
}

// reportAddresses logs each other node that announces the address of this node for clients, once.
func (e *Entry) reportAddresses() {
	self := e.options.View.Self()
	same := make(map[cluster.Home]bool)
	for _, n := range e.options.View.Nodes() {
		if n.State == cluster.Dead || n.URL == "" || n.URL != self.URL {
			continue
		}
		same[n.Home] = true
		if !e.same[n.Home] {
			e.log.Error("another node has the same address for clients, so that clients are not moved to either; "+
				"server.public_url names an address of one node", zap.String("node", n.Home.Node),
				zap.String("url", n.URL))
		}
	}
	e.same = same
}

// find returns the node for which a condition holds.
func find(nodes []cluster.Node, condition func(cluster.Node) bool) (cluster.Node, bool) {
	at := slices.IndexFunc(nodes, condition)
	if at < 0 {
		return cluster.Node{}, false
	}
	return nodes[at], true
}

// errNone reports that no node accepts clients.
var errNone = errors.New("no node of the cluster accepts clients")

// place chooses a node for a client of a room among the nodes that accept clients, this one included unless it drains,
// and counts the join. region is the preferred region, empty for that of this node. The error is placement.ErrFull or
// errNone.
func (e *Entry) place(now time.Time, room, region string, by ways) (cluster.Node, error) {
	self := e.self()
	if region == "" {
		region = self.Region
	}
	nodes := slices.DeleteFunc(e.others(), func(n cluster.Node) bool { return by.check(n) != nil })
	if !self.Draining {
		self.Beat = now
		nodes = append(nodes, self)
	}
	if len(nodes) == 0 {
		return cluster.Node{}, errNone
	}
	having := e.options.View.NodesOf(room)
	candidates := make([]placement.Node, len(nodes))
	for i, n := range nodes {
		candidates[i] = placement.Node{Name: n.Home.Node, Region: n.Region, Load: n.Load, PerJoin: n.JoinLoad,
			Reported: n.Beat, HasRoom: slices.Contains(having, n.Home.Node)}
	}
	e.mu.Lock()
	chosen, err := e.placement.Choose(now, room, region, candidates)
	e.mu.Unlock()
	if err != nil {
		return cluster.Node{}, err
	}
	node, _ := find(nodes, func(n cluster.Node) bool { return n.Home.Node == chosen.Name })
	return node, nil
}
