package member

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/roomevent"
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
	Operate *roomevent.Operate        `json:"operate,omitempty"`
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

// payloads sends poses, data messages and changes of operators over the trunks.
type payloads struct {
	directory *directory
	trunks    Trunks
	log       *zap.Logger
	outboxes  map[string]*outbox
	lost      Lost
}

// sendPose sends a pose to the nodes that have the room, or to one node.
func (p *payloads) sendPose(room string, e roomevent.Posed) {
	data, err := (&payload{Room: room, Ref: e.Ref, Pose: e.Pose}).encode()
	if err != nil || len(data) > trunk.MaxPayload {
		p.log.Error("a pose cannot be sent to other nodes", zap.Stringer("publication", e.Ref), zap.Error(err))
		return
	}
	nodes := []string{e.Node}
	if e.Node == "" {
		nodes = p.directory.replica.NodesOf(room)
	}
	for _, node := range nodes {
		p.outbox(node).pose(poseKey{room, e.Ref}, data)
	}
}

// sendData sends a data message to the nodes of its recipients.
func (p *payloads) sendData(now time.Time, room string, e roomevent.Sent) {
	present := p.directory.replica.NodesOf(room)
	nodes := e.Nodes
	if nodes == nil {
		nodes = present
	}
	data, err := (&payload{Room: room, From: e.From, Data: e.Data}).encode()
	for _, node := range nodes {
		switch {
		case err != nil || len(data) > trunk.MaxPayload:
			p.lost.Large++
		case !slices.Contains(present, node):
			p.lost.Dead++
		case e.Data.Lossy:
			if o := p.outbox(node); !o.linked || len(o.reliable) > 0 || p.trunks.Send(node, data) != nil {
				p.lost.Lossy++
			}
		case !p.outbox(node).add(now, data):
			p.lost.Limited++
		}
	}
}

// sendOperate sends an operator's change to the home of a participant.
func (p *payloads) sendOperate(now time.Time, room string, e roomevent.Operate) {
	data, err := (&payload{Room: room, Operate: &e}).encode()
	if err != nil || len(data) > trunk.MaxPayload || !slices.Contains(p.directory.replica.NodesOf(room), e.Node) ||
		!p.outbox(e.Node).add(now, data) {
		p.lost.Limited++
		p.log.Warn("an operator's change does not reach the node of the participant", zap.String("room", room),
			zap.String("participant", e.Identity), zap.String("node", e.Node), zap.Error(err))
	}
}

// outbox returns the queue of a node.
func (p *payloads) outbox(node string) *outbox {
	o := p.outboxes[node]
	if o == nil {
		o = &outbox{poses: map[poseKey][]byte{}}
		p.outboxes[node] = o
	}
	return o
}

// flush sends what waits for trunks.
func (p *payloads) flush(now time.Time) {
	for node, o := range p.outboxes {
		if o.empty() {
			continue
		}
		expired := o.flush(now, func(data []byte) bool { return p.trunks.Send(node, data) == nil })
		if o.linked {
			p.lost.Limited += uint64(expired)
		} else {
			p.lost.Unlinked += uint64(expired)
		}
	}
}

// link notes that the trunk to a node is open, unlink that it has ended.
func (p *payloads) link(node string)   { p.outbox(node).linked = true }
func (p *payloads) unlink(node string) { p.outbox(node).unlink() }

// drop removes what waits for a node that is dead.
func (p *payloads) drop(node string) {
	if o := p.outboxes[node]; o != nil {
		p.lost.Dead += uint64(o.clear())
	}
}

// waiting reports whether a payload waits for a trunk.
func (p *payloads) waiting() bool {
	for _, o := range p.outboxes {
		if !o.empty() {
			return true
		}
	}
	return false
}
