package member

import (
	"encoding/json"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/trunk"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// payload is an event of a room that is sent over trunks. Exactly one of Pose and Data is set, or neither if an object
// has no pose any more.
type payload struct {
	Room string                    `json:"room"`
	Ref  volumetric.PublicationRef `json:"ref,omitzero"`
	Pose *signal.Pose              `json:"pose,omitempty"`
	From string                    `json:"from,omitempty"`
	Data *signal.Data              `json:"data,omitempty"`
}

// carry passes an event of a room of this node to the trunks. carry reports whether the event is one of media.
func (m *Member) carry(room string, event sfu.Event) bool {
	switch e := event.(type) {
	case sfu.Mirrored:
		qualities := m.qualities(room, e.Ref)
		if qualities > 0 {
			m.trunks.Mirror(e.Node, room, e.Ref, e.ID, qualities, e.Tracks)
		}
	case sfu.Unmirrored:
		m.trunks.Unmirror(e.Node, room, e.Ref, e.ID)
	case sfu.Take:
		m.trunks.Take(e.Node, room, e.Ref, e.ID, e.Tiles, e.Near, e.Parity)
	case sfu.Rates:
		m.trunks.SetRates(room, e.Ref, e.ID, e.Rates)
	case sfu.GaveUp:
		m.trunks.SetGaveUp(room, e.Ref, e.ID, e.Tiles)
	case sfu.Posed:
		m.sendToRoom(room, payload{Room: room, Ref: e.Ref, Pose: e.Pose})
	case sfu.Sent:
		m.sendToRoom(room, payload{Room: room, From: e.From, Data: e.Data})
	default:
		return false
	}
	return true
}

// qualities returns the number of qualities of a publication of another node, 0 if the publication has ended.
func (m *Member) qualities(room string, ref volumetric.PublicationRef) int {
	claim, _ := m.replica.Winner(room, ref.Participant)
	for _, publication := range claim.Publications {
		if publication.Description.Name == ref.Publication {
			return len(publication.Description.Qualities)
		}
	}
	return 0
}

// sendToRoom sends a payload to the nodes that have a room. A payload for a node without a trunk is lost.
func (m *Member) sendToRoom(room string, p payload) {
	data, err := json.Marshal(p)
	if err != nil {
		m.log.Error("an event for other nodes cannot be encoded", zap.Error(err))
		return
	}
	for _, node := range m.replica.NodesOf(room) {
		m.trunks.Send(node, data)
	}
}

// connect opens a trunk to a node.
func (m *Member) connect(node cluster.Node) {
	address, err := netip.ParseAddrPort(node.Trunk)
	if err != nil {
		m.log.Error("node has no address for a trunk", zap.String("node", node.Home.Node),
			zap.String("address", node.Trunk), zap.Error(err))
		return
	}
	m.trunks.Connect(node.Home.Node, address)
}

// stepTrunks passes the events of trunks on.
func (m *Member) stepTrunks(now time.Time) {
	for _, event := range m.trunks.Step(now) {
		switch e := event.(type) {
		case trunk.Linked:
			m.log.Info("trunk is open", zap.String("node", e.Node))
		case trunk.Unlinked:
			m.log.Warn("trunk has ended", zap.String("node", e.Node), zap.String("reason", e.Reason))
			m.exited(e.Node)
		case trunk.Refused:
			m.log.Warn("trunk is refused", zap.Stringer("address", e.Address), zap.String("reason", e.Reason))
		case trunk.Heard:
			m.replica.HeardTrunk(now, e.Node, e.Incarnation)
		case trunk.Took:
			m.remote(e.Room, e.Node, sfu.Take{Ref: e.Ref, Node: m.self.Name, ID: e.ID, Tiles: e.Tiles, Near: e.Near,
				Parity: e.Parity})
		case trunk.Rates:
			m.remote(e.Room, e.Node, sfu.Rates{Ref: e.Ref, ID: e.ID, Rates: e.Rates})
		case trunk.GaveUp:
			m.remote(e.Room, e.Node, sfu.GaveUp{Ref: e.Ref, ID: e.ID, Tiles: e.Tiles})
		case trunk.Masked:
			m.remote(e.Room, e.Node, sfu.Masked{Ref: e.Ref, ID: e.ID, Tiles: e.Tiles})
		case trunk.Received:
			m.receivePayload(e.Node, e.Payload)
		}
	}
}

// receivePayload passes a payload of another node to its room.
func (m *Member) receivePayload(node string, data []byte) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil || p.Room == "" {
		m.mu.Lock()
		m.counts.Invalid++
		m.mu.Unlock()
		return
	}
	if p.Data != nil {
		m.remote(p.Room, node, sfu.Sent{From: p.From, Data: p.Data})
		return
	}
	m.remote(p.Room, node, sfu.Posed{Ref: p.Ref, Pose: p.Pose})
}
