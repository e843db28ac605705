package member

import (
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
)

// applyEvents applies the events of the replica.
func (m *Member) applyEvents(now time.Time) {
	for _, event := range m.replica.Events() {
		if !m.rooms.apply(event) {
			m.applyToNode(now, event)
		}
	}
}

// applyToNode applies an event that concerns a node.
func (m *Member) applyToNode(now time.Time, event cluster.Event) {
	switch e := event.(type) {
	case cluster.NodeAppeared:
		m.log.Info("a node has appeared", zap.String("node", e.Node.Home.Node), zap.String("region", e.Node.Region))
		m.sessions.Returned(now, e.Node.Home)
	case cluster.NodeChanged:
		m.log.Info("a node has changed", zap.String("node", e.Node.Home.Node), zap.Bool("draining", e.Node.Draining))
		m.sessions.Check()
	case cluster.NodeSuspected:
		m.log.Warn("a node sends no heartbeats", zap.String("node", e.Home.Node))
	case cluster.NodeTrusted:
		m.log.Info("a node sends heartbeats again", zap.String("node", e.Home.Node))
		m.sessions.Returned(now, e.Home)
	case cluster.NodeDead:
		m.log.Warn("a node is dead; its participants are detached", zap.String("node", e.Home.Node))
		m.lostNode(now, e.Home)
	case cluster.NodeReturned:
		m.log.Info("a dead node has returned", zap.String("node", e.Home.Node))
		m.sessions.Returned(now, e.Home)
	case cluster.NodeLeft:
		m.log.Info("a node has left the cluster", zap.String("node", e.Home.Node))
		m.lostNode(now, e.Home)
		delete(m.links.nodes, e.Home.Node)
		m.trunks.Disconnect(e.Home.Node)
		delete(m.payloads.outboxes, e.Home.Node)
	case cluster.NodeRefused:
		m.log.Error("a node cannot share rooms with this node", zap.String("node", e.Home.Node),
			zap.String("reason", e.Reason))
	case cluster.FabricLost:
		m.log.Warn("no node sends heartbeats; this node has probably lost its connection to the others")
	case cluster.FabricReturned:
		m.log.Info("other nodes send heartbeats again")
	case cluster.SessionReceived:
		m.sessions.Receive(now, e.Home, e.Record)
		return
	}
	m.view.changed = true
}

// lostNode ends what waits for a node that is dead or has stopped. The demand of the node ends with its trunk.
func (m *Member) lostNode(now time.Time, home cluster.Home) {
	m.sessions.Lost(now, home)
	m.sessions.Check()
	m.payloads.drop(home.Node)
}
