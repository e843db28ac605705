// Package placement decides on which node of a cluster a client joins its room. Every node decides for the clients that
// enter there. Nodes need not agree: each node can serve each room, and a room that spans more nodes than necessary
// only costs the traffic between the nodes.
//
// A Placement belongs to one goroutine or is guarded by its owner. It does not read the clock.
package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

const (
	// excess is the load, as a multiple of the mean of the region, above which no room starts on a node. Random
	// placement of 1,000 rooms on 5 nodes has a standard deviation of 6 % of the mean; rooms above the limit start on
	// the next node of their ranking.
	excess = 1.05
	// full is the load above which a node takes no more clients. The rest of the capacity is for rates that rise after
	// the join and for the clients of a failed node.
	full = 0.85
	// averaging is the time that a join needs to appear in its node's report: loads are averaged over about a second.
	averaging = time.Second
	// memory is the time after which a join no longer counts, however old the report of its node is.
	memory = 30 * time.Second
	// maxRecent bounds the stored joins of one node. Older joins are forgotten first.
	maxRecent = 1 << 12
)

// RetryAfter is the time after which a client may try again when all nodes are full.
const RetryAfter = time.Second

// ErrFull reports that every node is full.
var ErrFull = errors.New("all nodes of the cluster are full")

// Node is a node as its last report describes it.
type Node struct {
	// Name is unique in the cluster.
	Name string
	// Region is empty in a cluster without regions.
	Region string
	// Load is the used part of the node's capacity, 0 to 1.
	Load float64
	// PerJoin is the load that one more client adds.
	PerJoin float64
	// Reported is the time when the report arrived. Joins that were sent to the node less than a second before, and
	// later, count in addition to Load.
	Reported time.Time
	// HasRoom reports that the node has the room of the join.
	HasRoom bool
}

// Placement chooses nodes for joins. The zero value is ready for use.
type Placement struct {
	// recent has the times of the recent joins of each node, in order.
	recent map[string][]time.Time
}

// Choose returns the node for a join of a room, and counts the join as sent there. nodes are the nodes that accept
// clients: alive and not draining. region is the preferred region; nodes of other regions are chosen only if the region
// has no node or all its nodes are full. The error is ErrFull.
//
// A room that runs on nodes of the region continues there: the first of these nodes in the ranking that is not full is
// chosen, then the first other node that is not full. A room that runs nowhere in the region starts on the first node
// up to excess × the mean load. The join that starts a room counts twice, because others follow it.
func (p *Placement) Choose(now time.Time, room, region string, nodes []Node) (Node, error) {
	p.expire(now)
	ranked := rank(room, nodes)
	// A stable sort keeps the ranking within the region and within the rest.
	slices.SortStableFunc(ranked, func(a, b Node) int { return cmp.Compare(outside(a, region), outside(b, region)) })
	inside := len(ranked)
	if at := slices.IndexFunc(ranked, func(n Node) bool { return n.Region != region }); at > 0 {
		inside = at
	}
	node, ok := p.among(ranked[:inside])
	if !ok {
		node, ok = p.among(ranked[inside:])
	}
	if !ok {
		return Node{}, ErrFull
	}
	p.Sent(now, node.Name)
	if !node.HasRoom {
		p.Sent(now, node.Name)
	}
	return node, nil
}

func outside(n Node, region string) int {
	if n.Region == region {
		return 0
	}
	return 1
}

// among chooses from ranked nodes. among reports false if all are full.
func (p *Placement) among(ranked []Node) (Node, bool) {
	loads := p.loads(ranked)
	var total float64
	running := false
	for i, n := range ranked {
		total += loads[i]
		running = running || n.HasRoom
	}
	limit := excess * total / float64(len(ranked))
	var spill *Node
	for i := range ranked {
		n := &ranked[i]
		switch {
		case loads[i] > full:
		case running && n.HasRoom, !running && loads[i] <= limit:
			return *n, true
		case spill == nil:
			spill = n
		}
	}
	if spill == nil {
		return Node{}, false
	}
	return *spill, true
}

// loads returns the reported loads of nodes plus the joins that the reports do not include. A node knows only the joins
// that it sent itself. The other nodes are assumed to have sent as many.
func (p *Placement) loads(nodes []Node) []float64 {
	loads := make([]float64, len(nodes))
	for i, n := range nodes {
		from, _ := slices.BinarySearchFunc(p.recent[n.Name], n.Reported.Add(-averaging), time.Time.Compare)
		loads[i] = n.Load + float64(len(p.recent[n.Name])-from)*n.PerJoin*float64(len(nodes))
	}
	return loads
}

// Sent counts a join that was sent to a node without Choose.
func (p *Placement) Sent(now time.Time, node string) {
	if p.recent == nil {
		p.recent = make(map[string][]time.Time)
	}
	joins := p.recent[node]
	if len(joins) >= maxRecent {
		joins = append(joins[:0], joins[maxRecent/2:]...)
	}
	p.recent[node] = append(joins, now)
}

// expire forgets joins that no longer count.
func (p *Placement) expire(now time.Time) {
	for node, joins := range p.recent {
		n, _ := slices.BinarySearchFunc(joins, now.Add(-memory), time.Time.Compare)
		switch {
		case n == len(joins):
			delete(p.recent, node)
		case n > len(joins)/2:
			p.recent[node] = append(joins[:0], joins[n:]...)
		}
	}
}

// rank returns the nodes in the order of the room's ranking.
func rank(key string, nodes []Node) []Node {
	weights := make(map[string]uint64, len(nodes))
	for _, n := range nodes {
		weights[n.Name] = weight(key, n.Name)
	}
	ranked := slices.Clone(nodes)
	slices.SortFunc(ranked, func(a, b Node) int { return compare(weights, a.Name, b.Name) })
	return ranked
}

// Rank returns names in the ranking of a key, such as the name of a room or of a session. The ranking is rendezvous
// hashing (Thaler and Ravishankar, 1998): without a node, the order of the other nodes is the same.
func Rank(key string, names []string) []string {
	weights := make(map[string]uint64, len(names))
	for _, name := range names {
		weights[name] = weight(key, name)
	}
	ranked := slices.Clone(names)
	slices.SortFunc(ranked, func(a, b string) int { return compare(weights, a, b) })
	return ranked
}

// compare orders names by falling weight, and equal weights by name.
func compare(weights map[string]uint64, a, b string) int {
	return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b))
}

// weight returns the weight of a node for a key, the same in all processes and versions. The name's length separates
// the two strings.
func weight(key, name string) uint64 {
	hashed := make([]byte, 0, 2+len(name)+len(key))
	hashed = binary.BigEndian.AppendUint16(hashed, uint16(len(name)))
	hashed = append(append(hashed, name...), key...)
	sum := sha256.Sum256(hashed)
	return binary.BigEndian.Uint64(sum[:])
}
