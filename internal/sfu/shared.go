package sfu

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
)

// operate passes the change of a mirrored participant to its home. The error names what the room knows to be wrong.
// Whether the home makes the change is not known. requester is nil for the operator.
func (s *span) operate(requester *participant, identity string, e Operate) *signal.Error {
	m := s.mirrors[identity]
	if m.detached {
		return noAnswer(identity)
	}
	switch {
	case e.Mute != nil && m.publication(e.Mute.Publication) == nil:
		return refuse(signal.CodeNotFound, "there is no publication %q of %q", e.Mute.Publication, identity)
	case e.Attributes != nil:
		_, bytes, refused := mergeAttributes("attributes", m.attributes, e.Attributes.Attributes)
		if refused == nil {
			refused = s.room.checkDescriptions(identity, m.describedBytes()-m.attributesBytes+bytes)
		}
		if refused == nil {
			refused = s.room.charge(requester, bytes)
		}
		if refused != nil {
			return refused
		}
	}
	e.Node, e.Identity = m.node, identity
	s.tell(e)
	return nil
}

// apply implements Event.
func (e Operate) apply(r *Room, node string) {
	p := r.participants[e.Identity]
	var refused *signal.Error
	switch {
	case p == nil:
		refused = refuse(signal.CodeNotFound, "there is no participant %q in the room", e.Identity)
	case e.Mute != nil:
		refused = r.mute(p, e.Mute.Publication, e.Mute.Muted, true)
	case e.Permissions != nil:
		r.setPermissions(p, e.Permissions)
	case e.Attributes != nil:
		refused = r.setAttributes(nil, p, e.Attributes.Attributes)
	}
	if refused != nil {
		r.log.Warn("a change by another node has no effect", zap.String("node", node),
			zap.String("participant", e.Identity), errorField(refused))
	}
}

// changedShared tells this node's part of the state of the room.
func (s *span) changedShared() {
	if s == nil {
		return
	}
	r := s.room
	e := Shared{Metadata: r.metadata, MetadataAt: r.metadataAt}
	if r.recorded != nil {
		e.Recording = r.recorded.since
	}
	s.tell(e)
}

const (
	// maxSharedNodes bounds the nodes whose parts of a room are kept: the nodes of the largest cluster.
	maxSharedNodes = 1024
	// maxMetadataAt bounds the times of other nodes, so that a later change has a later time.
	maxMetadataAt = 1 << 60
)

// apply implements Event.
func (e Shared) apply(r *Room, node string) {
	s, before := r.span, r.isRecorded()
	if _, known := s.shared[node]; !known && len(s.shared) >= maxSharedNodes {
		r.log.Warn("the state of the room on another node is left out", zap.String("node", node),
			zap.Int("limit", maxSharedNodes))
		return
	}
	e.MetadataAt = min(e.MetadataAt, maxMetadataAt)
	if e.MetadataAt == 0 && e.Recording == 0 {
		delete(s.shared, node)
	} else {
		s.shared[node] = e
	}
	if e.MetadataAt > r.metadataAt || e.MetadataAt == r.metadataAt && larger(e.Metadata, r.metadata) {
		r.receiveMetadata(e, node)
	}
	switch _, present := s.shared[node]; {
	case e.Recording != 0:
		s.recorder = node
		r.yieldRecording(e.Recording, node)
	case !present && s.recorder == node:
		// The node that recorded the room has left. An operator who ends a recording does not cause another.
		s.recorder = ""
		s.elect()
	}
	r.announceRecorded(before)
}

// larger decides between metadata of the same time.
func larger(a, b map[string]string) bool {
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return string(one) > string(other)
}

// receiveMetadata sets the metadata of the room, which an operator has changed on another node.
func (r *Room) receiveMetadata(e Shared, node string) {
	metadata, _, refused := mergeAttributes("metadata", nil, e.Metadata)
	if refused != nil {
		r.log.Warn("metadata of another node is left out", zap.String("node", node), errorField(refused))
		return
	}
	r.metadata, r.metadataAt = metadata, e.MetadataAt
	r.participants.share(nil, &signal.Metadata{Metadata: metadata})
	r.recordMetadata()
	// A node that enters later may know only this node.
	r.span.changedShared()
}

// isRecorded reports whether a node records the room.
func (r *Room) isRecorded() bool {
	if r.recorded != nil {
		return true
	}
	return r.span.recordedElsewhere()
}

// recordedElsewhere reports whether another node records the room.
func (s *span) recordedElsewhere() bool {
	if s == nil {
		return false
	}
	for _, e := range s.shared {
		if e.Recording != 0 {
			return true
		}
	}
	return false
}

// announceRecorded tells the participants whether the room is recorded, if that has changed.
func (r *Room) announceRecorded(before bool) {
	if now := r.isRecorded(); now != before {
		r.participants.broadcast(nil, func() signal.Message { return &signal.Recording{Active: now} })
	}
}

// yieldRecording ends an automatic recording of this node if another node began to record earlier.
func (r *Room) yieldRecording(since int64, node string) {
	if c := r.recorded; c != nil && c.automatic && since < c.since {
		r.log.Info("another node records the room", zap.String("node", node))
		r.stopRecording("another node records the room")
	}
}

const (
	// electionTime is the time after which a node begins an automatic recording, if it knows of no other: a node learns
	// of the recordings of others within a beat and a round trip.
	electionTime = time.Second
	// electionSpread is the random time added, so that two nodes rarely begin together.
	electionSpread = time.Second
)

// elect begins an automatic recording later, if no other node then records the room.
func (s *span) elect() {
	if !s.electing {
		s.electing = true
		s.room.after(electionTime+rand.N(electionSpread), elected{})
	}
}

// elected is the request to begin an automatic recording.
type elected struct{}

// apply implements request.
func (elected) apply(r *Room) {
	r.span.electing = false
	if r.recordsAutomatically() && !r.span.recordedElsewhere() && len(r.participants) > 0 {
		r.startRecording(r.node.config.Recorder.Automatic(), true)
	}
}
