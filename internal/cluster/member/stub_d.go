package member

import (
	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu"
)

func (m *Member) Self() cluster.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cluster.Node{Home: cluster.Home{Node: m.self.Name, Incarnation: m.self.Incarnation}, Description: m.self.Description, State: cluster.Alive, Status: cluster.Status{Draining: m.draining}}
}

func (m *Member) NodesOf(room string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.having[room]
}
func (m *Member) Session(room, session string) (cluster.Home, sfu.SessionState, bool) {
	return cluster.Home{}, sfu.SessionState{}, false
}
func (m *Member) Keepers(home, room, session string) []string { return nil }
func (m *Member) Share(session, node string)                  {}
