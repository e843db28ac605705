package sfu

import (
	"encoding/json"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
)

// changedShared tells this node's part of the state of the room.
func (s *span) changedShared() {
	if s == nil {
		return
	}
	r := s.room
	e := Shared{Metadata: r.metadata, MetadataAt: r.metadataAt}
	if r.recorder.current != nil {
		e.Recording = r.recorder.current.Since
	}
	e.Ended = r.recorder.ended
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
	s, before := r.span, r.recorder.active()
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
	r.recorder.follow(e, node)
	r.recorder.announce(before)
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
	r.recorder.current.Metadata(r.now, r.metadata)
	// A node that enters later may know only this node.
	r.span.changedShared()
}
