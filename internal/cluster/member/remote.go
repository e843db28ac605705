package member

import (
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// applyEvents applies the events of the replica.
func (m *Member) applyEvents(now time.Time) {
	for _, event := range m.replica.Events() {
		if !m.applyToRoom(event) {
			m.applyToNode(now, event)
		}
	}
}

// changed notes that the claim of an identity may differ from what a room was told.
func (m *Member) changed(room, identity, reason string) {
	if r := m.entered[room]; r != nil {
		r.change(identity, reason)
	}
}

// inform adds an event for a room that is passed in its order.
func (m *Member) inform(room, node string, e sfu.Event) {
	if r := m.entered[room]; r != nil {
		r.order(node, e)
	}
}

// applyToRoom applies an event that concerns a room. applyToRoom reports false for other events.
func (m *Member) applyToRoom(event cluster.Event) bool {
	switch e := event.(type) {
	case cluster.ParticipantJoined:
		m.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantMoved:
		m.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantChanged:
		m.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantBack:
		m.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantDetached:
		m.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantLeft:
		m.changed(e.Room, e.Identity, string(e.Reason))
	case cluster.PublicationAdded:
		m.changed(e.Room, e.Ref.Participant, "")
	case cluster.PublicationChanged:
		m.changed(e.Room, e.Ref.Participant, "")
	case cluster.PublicationRemoved:
		m.changed(e.Room, e.Ref.Participant, "")
	case cluster.RoomChanged:
		if r := m.entered[e.Room]; r != nil {
			r.state(e.Home.Node, volumetric.PublicationRef{}, sfu.Shared{Metadata: e.State.Metadata,
				MetadataAt: e.State.MetadataAt, Recording: e.State.Recording, Ended: e.State.Ended})
		}
	case cluster.Superseded:
		reason := "another participant has the identity"
		if e.Moved {
			reason = "the session has continued on another server"
		}
		m.inform(e.Room, e.By.Node, sfu.Superseded{Identity: e.Identity, Session: e.Session, Moved: e.Moved,
			Code: e.Code, Reason: reason})
		m.changed(e.Room, e.Identity, "")
	case cluster.Kicked:
		m.inform(e.Room, "", sfu.Kick{Identity: e.Identity, Session: e.Session})
	case cluster.Banned:
		m.bans = append(m.bans, e)
	case cluster.RoomClosed:
		m.inform(e.Room, "", sfu.Close{Before: e.At})
	default:
		return false
	}
	return true
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
		delete(m.outboxes, e.Home.Node)
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
	m.nodesChanged = true
}

// lostNode ends what waits for a node that is dead or has stopped. The demand of the node ends with its trunk.
func (m *Member) lostNode(now time.Time, home cluster.Home) {
	m.sessions.Lost(now, home)
	m.sessions.Check()
	if o := m.outboxes[home.Node]; o != nil {
		m.lost.Dead += uint64(o.clear())
	}
}

// deliver passes to the rooms what waits for them. deliver is called without the mutex of the state, since rooms may
// wait for a goroutine that reads the state.
func (m *Member) deliver(now time.Time) (waiting bool) {
	for _, b := range m.bans {
		// A ban holds in rooms that this node does not have, too.
		m.rooms.Remote(b.Room, "", sfu.Kick{Identity: b.Identity, TokenID: b.TokenID, Until: b.Until})
	}
	m.bans = nil
	for _, r := range m.entered {
		if !r.waiting() {
			continue
		}
		m.options.Guard.Try(Place, func() {
			r.deliver(now, func(node string, e sfu.Event) bool { return m.rooms.Remote(r.name, node, e) },
				func(identity string) (cluster.Claim, bool) {
					claim, found := m.replica.Winner(r.name, identity)
					return claim, found && claim.Home.Node != m.self.Name
				})
		})
		waiting = waiting || r.waiting()
	}
	return waiting
}
