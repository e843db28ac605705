package member

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/trunk"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// payload is an event of a room that is sent over trunks. Exactly one of Pose, Data and Operate is set.
type payload struct {
	Room    string                    `json:"room"`
	Ref     volumetric.PublicationRef `json:"ref,omitzero"`
	Pose    *signal.Pose              `json:"pose,omitempty"`
	From    string                    `json:"from,omitempty"`
	Data    *signal.Data              `json:"data,omitempty"`
	Operate *sfu.Operate              `json:"operate,omitempty"`
}

// errPayload is wrapped with the reason for which a payload is invalid.
var errPayload = errors.New("invalid payload of a node")

// encode returns the payload as JSON. The characters <, > and & stay as they are: a text of the maximum length would
// otherwise exceed the limit of a trunk.
func (p *payload) encode() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(p); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// decodePayload decodes a payload. The room checks the contents. Unknown keys are ignored.
func decodePayload(data []byte) (*payload, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	if err := volumetric.ValidateName("room", p.Room); err != nil {
		return nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	contents := 0
	for _, present := range []bool{p.Pose != nil, p.Data != nil, p.Operate != nil} {
		if present {
			contents++
		}
	}
	if contents != 1 {
		return nil, fmt.Errorf("%w: %d contents, expected 1", errPayload, contents)
	}
	return &p, nil
}

// Lost counts the data messages that did not reach a node, by cause.
type Lost struct {
	// Dead are messages to nodes that are dead or do not have the room, Unlinked those that found no trunk in time,
	// Limited those beyond a limit of a trunk or of its queue, Large those that are too large for a trunk. Lossy are
	// lossy messages without a trunk or beyond a limit.
	Dead, Unlinked, Limited, Large, Lossy uint64
}

// sendPose sends a pose to the nodes that have the room, or to one node.
func (m *Member) sendPose(room string, e sfu.Posed) {
	data, err := (&payload{Room: room, Ref: e.Ref, Pose: e.Pose}).encode()
	if err != nil || len(data) > trunk.MaxPayload {
		m.log.Error("a pose cannot be sent to other nodes", zap.Stringer("publication", e.Ref), zap.Error(err))
		return
	}
	nodes := []string{e.Node}
	if e.Node == "" {
		nodes = m.replica.NodesOf(room)
	}
	for _, node := range nodes {
		m.outbox(node).pose(poseKey{room, e.Ref}, data)
	}
}

// sendData sends a data message to the nodes of its recipients.
func (m *Member) sendData(now time.Time, room string, e sfu.Sent) {
	present := m.replica.NodesOf(room)
	nodes := e.Nodes
	if nodes == nil {
		nodes = present
	}
	data, err := (&payload{Room: room, From: e.From, Data: e.Data}).encode()
	for _, node := range nodes {
		switch {
		case err != nil || len(data) > trunk.MaxPayload:
			m.lost.Large++
		case !slices.Contains(present, node):
			m.lost.Dead++
		case e.Data.Lossy:
			if o := m.outbox(node); !o.linked || len(o.reliable) > 0 || m.trunks.Send(node, data) != nil {
				m.lost.Lossy++
			}
		case !m.outbox(node).add(now, data):
			m.lost.Limited++
		}
	}
}

// sendOperate sends an operator's change to the home of a participant.
func (m *Member) sendOperate(now time.Time, room string, e sfu.Operate) {
	data, err := (&payload{Room: room, Operate: &e}).encode()
	if err != nil || len(data) > trunk.MaxPayload || !slices.Contains(m.replica.NodesOf(room), e.Node) ||
		!m.outbox(e.Node).add(now, data) {
		m.lost.Limited++
		m.log.Warn("an operator's change does not reach the node of the participant", zap.String("room", room),
			zap.String("participant", e.Identity), zap.String("node", e.Node), zap.Error(err))
	}
}

// outbox returns the queue of a node.
func (m *Member) outbox(node string) *outbox {
	o := m.outboxes[node]
	if o == nil {
		o = &outbox{poses: map[poseKey][]byte{}}
		m.outboxes[node] = o
	}
	return o
}

// flushOutboxes sends what waits for trunks.
func (m *Member) flushOutboxes(now time.Time) {
	for node, o := range m.outboxes {
		if o.empty() {
			continue
		}
		expired := o.flush(now, func(data []byte) bool { return m.trunks.Send(node, data) == nil })
		if o.linked {
			m.lost.Limited += uint64(expired)
		} else {
			m.lost.Unlinked += uint64(expired)
		}
	}
}

// receivePayload passes a payload of another node to its room.
func (m *Member) receivePayload(now time.Time, node string, data []byte) {
	p, err := decodePayload(data)
	if err != nil {
		m.invalid++
		return
	}
	r := m.entered[p.Room]
	if r == nil {
		return
	}
	kept := true
	switch {
	case p.Pose != nil:
		kept = r.pose(node, sfu.Posed{Ref: p.Ref, Pose: p.Pose})
	case p.Data != nil:
		kept = r.receive(now, node, sfu.Sent{From: p.From, Data: p.Data})
	case len(r.orders) < roomData:
		r.order(node, *p.Operate)
	default:
		kept = false
	}
	if !kept {
		m.dropped++
	}
}
