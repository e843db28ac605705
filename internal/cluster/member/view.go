package member

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/cluster/session"
	"github.com/volsfu/volsfu/internal/fabric"
	"github.com/volsfu/volsfu/internal/trunk"
)

const (
	// viewInterval is the minimum time between two copies of the nodes, half of the interval of beats. statsInterval is
	// that of the trunks' counters.
	viewInterval  = 100 * time.Millisecond
	statsInterval = time.Second
)

// Counts are numbers of events since Open.
type Counts struct {
	// Fabric, Replica, Trunk and Sessions are those of the parts. Invalid counts messages that cannot be decoded,
	// Refused refused certificates, Dropped events for rooms and of rooms that were dropped because too many waited,
	// Lost data messages that did not reach a node.
	Fabric           fabric.Stats
	Replica          cluster.Counters
	Trunk            trunk.Stats
	Sessions         session.Counts
	Invalid, Dropped uint64
	Refused          uint64
	Lost             Lost
}

// view is a copy of the nodes and counters for other goroutines, which do not wait for the goroutine of the Member. The
// exported methods are safe for concurrent use.
type view struct {
	fabric Messages
	// certificate is nil in tests.
	certificate *certificate.Node

	mu     sync.Mutex
	nodes  []cluster.Node
	own    cluster.Node
	trunks []trunk.LinkState
	counts Counts

	// The goroutine of the Member owns the rest: changed is set if the nodes differ from the copy, copied and counted
	// are the times of the last copies.
	changed         bool
	copied, counted time.Time
}

// Self returns this node as the others see it. Before Serve, only the name and the incarnation are set, and this node
// knows no rooms, sessions and other nodes.
func (v *view) Self() cluster.Node {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.own
}

// Nodes returns the other nodes in the order of their names. The caller does not change the list.
func (v *view) Nodes() []cluster.Node {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.nodes
}

// Trunks returns the state of the trunks, which is at most a second old. The caller does not change the list.
func (v *view) Trunks() []trunk.LinkState {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.trunks
}

// Counts returns the counts.
func (v *view) Counts() Counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.counts
	c.Fabric = v.fabric.Stats()
	if v.certificate != nil {
		c.Refused = v.certificate.Refused()
	}
	return c
}

// drain sets the status draining of this node.
func (v *view) drain() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.own.Draining = true
}

// due reports whether the nodes must be copied, and whether the counters of the trunks must be copied, too.
func (v *view) due(now time.Time) (nodes, trunks bool) {
	if !v.changed && now.Sub(v.copied) < viewInterval {
		return false, false
	}
	v.changed, v.copied = false, now
	if trunks = now.Sub(v.counted) >= statsInterval; trunks {
		v.counted = now
	}
	return true, trunks
}
