package member

import (
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/trunk"
)

// connect opens the trunks to nodes with a common room, and closes those without.
func (m *Member) connect(now time.Time) {
	m.links.step(now, m.replica.Shared(), m.replica.Node,
		func(name string, address netip.AddrPort) { m.trunks.Connect(name, address) },
		func(name string) {
			m.log.Info("the trunk to a node without a common room is closed", zap.String("node", name))
			m.trunks.Disconnect(name)
			m.replica.TrunkClosed(name)
		}, m.log)
}

// stepTrunks applies the events of trunks.
func (m *Member) stepTrunks(now time.Time) {
	for _, event := range m.trunks.Step(now) {
		m.options.Guard.Try(Place, func() { m.applyTrunk(now, event) })
	}
}

func (m *Member) applyTrunk(now time.Time, event trunk.Event) {
	switch e := event.(type) {
	case trunk.Linked:
		m.log.Info("the trunk to a node is open", zap.String("node", e.Node))
		m.payloads.link(e.Node)
	case trunk.Unlinked:
		m.log.Warn("the trunk to a node has ended", zap.String("node", e.Node), zap.String("reason", e.Reason))
		m.payloads.unlink(e.Node)
		if m.links.nodes[e.Node] == nil {
			m.replica.TrunkClosed(e.Node)
		}
		m.rooms.exited(e.Node)
	case trunk.Refused:
		m.log.Warn("a trunk is refused", zap.Stringer("address", e.Address), zap.String("reason", e.Reason),
			zap.Uint64("not_logged_since_the_last", e.Omitted))
	case trunk.PortFailed:
		m.log.Error("the port for trunks cannot receive and is opened again", zap.Error(e.Err))
	case trunk.Unsent:
		m.log.Error("a message for the trunk to a node cannot be sent", zap.String("node", e.Node),
			zap.String("reason", e.Reason))
	case trunk.PacketsReceived:
		m.replica.TrunkReceived(now, e.Node, e.Incarnation)
	case trunk.Took:
		m.rooms.pass(e.Room, e.Node, e.Ref, roomevent.Take{Ref: e.Ref, Node: m.self.Name, ID: e.ID, Tiles: e.Tiles,
			Near: e.Near, Parity: e.Parity})
	case trunk.Rates:
		m.rooms.pass(e.Room, e.Node, e.Ref, roomevent.Rates{Ref: e.Ref, ID: e.ID, Rates: e.Rates})
	case trunk.GaveUp:
		m.rooms.pass(e.Room, e.Node, e.Ref, roomevent.GaveUp{Ref: e.Ref, ID: e.ID, Tiles: e.Tiles})
	case trunk.Masked:
		m.rooms.pass(e.Room, e.Node, e.Ref, roomevent.Masked{Ref: e.Ref, ID: e.ID, Tiles: e.Tiles})
	case trunk.Relayed:
		m.rooms.relayed(e.Room, e.Node, roomevent.Relayed{Ref: e.Ref, ID: e.ID, Offset: e.Offset, Bound: e.Bound,
			Uncertainty: e.Uncertainty, Frames: e.Frames})
	case trunk.Received:
		m.rooms.receivePayload(now, e.Node, e.Payload)
	}
}
