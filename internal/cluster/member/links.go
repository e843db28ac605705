package member

import (
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
)

// idleTime is the time for which a trunk to a node without a common room stays open: rooms often begin again, and the
// nodes of a room that has just ended know each other's trunk.
const idleTime = 30 * time.Second

// links decides to which nodes there are trunks.
type links struct {
	nodes map[string]*link
}

// link is a wanted trunk.
type link struct {
	// address is that in the node's description.
	address string
	// shared is the latest time with a common room.
	shared time.Time
}

// step connects to the nodes with a common room, and disconnects from those that have had none for a while. node
// returns the description of a node that is not dead.
func (l *links) step(now time.Time, shared []string, node func(name string) (cluster.Node, bool),
	connect func(name string, address netip.AddrPort), disconnect func(name string), log *zap.Logger) {
	for _, name := range shared {
		other, ok := node(name)
		if !ok {
			continue
		}
		wanted := l.nodes[name]
		if wanted == nil {
			wanted = &link{}
			l.nodes[name] = wanted
		}
		if wanted.shared = now; wanted.address == other.Trunk {
			continue
		}
		wanted.address = other.Trunk
		address, err := netip.ParseAddrPort(other.Trunk)
		if err != nil {
			log.Error("a node has no address for a trunk, expected IP:PORT", zap.String("node", name),
				zap.String("address", other.Trunk))
			continue
		}
		connect(name, address)
	}
	for name, wanted := range l.nodes {
		if now.Sub(wanted.shared) >= idleTime {
			delete(l.nodes, name)
			disconnect(name)
		}
	}
}
