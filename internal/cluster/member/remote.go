package member

import (
	"maps"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// deliver passes the events of the replica to the rooms of this node.
func (m *Member) deliver() {
	for room, waiting := range m.backlog {
		for len(waiting) > 0 && m.rooms.Remote(room, waiting[0].node, waiting[0].event) {
			waiting = waiting[1:]
		}
		if m.backlog[room] = waiting; len(waiting) == 0 {
			delete(m.backlog, room)
		}
	}
	for _, event := range m.replica.Events() {
		m.apply(event)
	}
}

// remote passes an event to a room. Events for which the room has no place wait in their order.
func (m *Member) remote(room, node string, e sfu.Event) {
	waiting := m.backlog[room]
	switch {
	case len(waiting) == 0 && m.rooms.Remote(room, node, e):
	case len(waiting) < backlogLimit:
		m.backlog[room] = append(waiting, remoteEvent{node, e})
	default:
		m.mu.Lock()
		m.counts.Dropped++
		m.mu.Unlock()
	}
}

// apply passes an event of the replica on.
func (m *Member) apply(event cluster.Event) {
	switch e := event.(type) {
	case cluster.ParticipantJoined:
		m.appear(e.Room, e.Claim)
	case cluster.ParticipantMoved:
		m.appear(e.Room, e.Claim)
	case cluster.ParticipantChanged:
		m.present(e.Room, e.Claim)
	case cluster.ParticipantBack:
		m.present(e.Room, e.Claim)
	case cluster.ParticipantDetached:
		m.remote(e.Room, e.Claim.Home.Node, sfu.Detached{Identity: e.Claim.Participant.Identity})
	case cluster.ParticipantLeft:
		maps.DeleteFunc(m.entered[e.Room], func(ref volumetric.PublicationRef, _ uint64) bool {
			return ref.Participant == e.Identity
		})
		m.remote(e.Room, e.Home.Node, sfu.Left{Identity: e.Identity, Session: e.Session, Reason: string(e.Reason)})
	case cluster.PublicationAdded:
		m.published(e.Room, e.Home.Node, e.Ref, e.Publication)
	case cluster.PublicationChanged:
		m.published(e.Room, e.Home.Node, e.Ref, e.Publication)
		if claim, found := m.replica.Winner(e.Room, e.Ref.Participant); found {
			m.present(e.Room, claim)
		}
	case cluster.PublicationRemoved:
		m.remote(e.Room, e.Home.Node, sfu.Unpublished{Ref: e.Ref, ID: m.entered[e.Room][e.Ref]})
		delete(m.entered[e.Room], e.Ref)
	case cluster.Superseded:
		m.remote(e.Room, e.By.Node, sfu.Superseded{Identity: e.Identity, Session: e.Session, Code: e.Code,
			Reason: "another participant has the identity"})
	case cluster.Kicked:
		m.remote(e.Room, "", sfu.Kick{Identity: e.Identity})
	case cluster.Banned:
		m.remote(e.Room, "", sfu.Kick{Identity: e.Identity, Until: e.Until})
	case cluster.RoomClosed:
		m.remote(e.Room, "", sfu.Close{})
	default:
		m.note(event)
	}
}

// note logs the events of nodes.
func (m *Member) note(event cluster.Event) {
	switch e := event.(type) {
	case cluster.NodeAppeared:
		m.log.Info("node has appeared", zap.String("node", e.Node.Home.Node), zap.String("region", e.Node.Region))
		m.connect(e.Node)
	case cluster.NodeChanged:
		m.connect(e.Node)
	case cluster.NodeSuspected:
		m.log.Warn("node does not answer", zap.String("node", e.Home.Node))
	case cluster.NodeTrusted:
		m.log.Info("node answers again", zap.String("node", e.Home.Node))
	case cluster.NodeDead:
		m.log.Warn("node is dead; its participants are detached", zap.String("node", e.Home.Node))
		m.exited(e.Home.Node)
	case cluster.NodeReturned:
		m.log.Info("dead node has returned", zap.String("node", e.Home.Node))
	case cluster.NodeLeft:
		m.log.Info("node has left", zap.String("node", e.Home.Node))
		m.trunks.Disconnect(e.Home.Node)
		m.exited(e.Home.Node)
	case cluster.NodeRefused:
		m.log.Error("node cannot share rooms with this one", zap.String("node", e.Home.Node),
			zap.String("reason", e.Reason))
	case cluster.FabricLost:
		m.log.Warn("no node sends heartbeats; this node has probably lost its connection to the others")
	case cluster.FabricReturned:
		m.log.Info("the heartbeats of other nodes arrive again")
	}
}

// exited tells all rooms that a node takes nothing.
func (m *Member) exited(node string) {
	for room := range m.entered {
		m.remote(room, node, sfu.Exited{})
	}
}

// appear passes the state of a participant and its publications on.
func (m *Member) appear(room string, claim cluster.Claim) {
	m.present(room, claim)
	for _, publication := range claim.Publications {
		ref := volumetric.PublicationRef{
			Participant: claim.Participant.Identity, Publication: publication.Description.Name,
		}
		m.published(room, claim.Home.Node, ref, publication)
	}
}

// present passes the state of a participant on.
func (m *Member) present(room string, claim cluster.Claim) {
	p := claim.Participant
	var muted []signal.MuteState
	for _, publication := range claim.Publications {
		if publication.OwnMuted || publication.OperatorMuted {
			muted = append(muted, signal.MuteState{Publication: publication.Description.Name,
				Own: publication.OwnMuted, Operator: publication.OperatorMuted})
		}
	}
	m.remote(room, claim.Home.Node, sfu.Present{Presence: sfu.Presence{Identity: p.Identity, Session: p.Session,
		Epoch: p.Epoch, Joined: p.Joined, Live: claim.Live, Attributes: p.Attributes, Muted: muted,
		Permissions: p.Permissions, Number: p.Number}})
}

// published passes the description of a publication on.
func (m *Member) published(room, node string, ref volumetric.PublicationRef, p cluster.Publication) {
	if ids := m.entered[room]; ids != nil {
		ids[ref] = p.ID
	}
	m.remote(room, node, sfu.Published{Ref: ref, ID: p.ID, Description: p.Description})
}
