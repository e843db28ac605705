package sfu

import (
	"encoding/json"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/signal"
)

// changeAttributes changes the attributes of the client, or of another participant if the client is an operator.
func (q messageRequest) changeAttributes(r *Room, m *signal.Attributes) *signal.Error {
	p := q.participant
	target, refused := q.target(r, m.Participant)
	if refused != nil {
		return refused
	}
	if target == nil {
		return r.span.operate(p, m.Participant, Operate{Attributes: &signal.Attributes{Attributes: m.Attributes}})
	}
	if target == p && !p.grants.Data {
		return refuse(signal.CodeForbidden, "the participant has no permission to change its attributes (data)")
	}
	return r.setAttributes(p, target, m.Attributes)
}

// setAttributes changes attributes of a participant and tells all participants, at the cost of the requester, nil for
// the operator.
func (r *Room) setAttributes(requester, p *participant, changed map[string]string) *signal.Error {
	merged, bytes, refused := mergeAttributes("attributes", p.Attributes, changed)
	if refused != nil {
		return refused
	}
	if refused := r.checkDescriptions(p.Identity, p.DescribedBytes()-p.AttributesBytes+bytes); refused != nil {
		return refused
	}
	if refused := r.charge(requester, bytes); refused != nil {
		return refused
	}
	p.Attributes, p.AttributesBytes = merged, bytes
	r.sendAttributes(&p.Presence)
	r.span.changed(p)
	return nil
}

// sendAttributes sends all participants the attributes of an announced participant.
func (r *Room) sendAttributes(p *presence.Presence) {
	if p.Audience {
		return
	}
	r.participants.share(nil, &signal.Attributes{Participant: p.Identity, Attributes: p.Attributes})
	r.recorder.current.Changed(r.now, p, &signal.Attributes{Participant: p.Identity, Attributes: p.Attributes})
}

// changeMetadata changes the metadata of the room for a client that is an operator.
func (q messageRequest) changeMetadata(r *Room, m *signal.Metadata) *signal.Error {
	p := q.participant
	if !p.grants.Admin {
		return refuse(signal.CodeForbidden, "the token does not grant changes to the room's metadata (admin)")
	}
	return r.setMetadata(p, m.Metadata)
}

// setMetadata changes the metadata of the room and tells all participants, at the cost of the requester, nil for the
// operator.
func (r *Room) setMetadata(requester *participant, changed map[string]string) *signal.Error {
	merged, bytes, refused := mergeAttributes("metadata", r.metadata, changed)
	if refused != nil {
		return refused
	}
	if refused := r.charge(requester, bytes); refused != nil {
		return refused
	}
	r.metadata = merged
	// The clocks of nodes differ. The last change wins also after a node with a fast clock.
	r.metadataAt = max(r.now.UnixMicro(), r.metadataAt+1)
	r.participants.share(nil, &signal.Metadata{Metadata: merged})
	r.recorder.current.Metadata(r.now, r.metadata)
	r.span.changedShared()
	return nil
}

// charge charges the bytes of a message to all participants to the budget of the requester.
func (r *Room) charge(requester *participant, bytes int) *signal.Error {
	if requester == nil {
		return nil
	}
	return r.announces(requester.bearer, admission.AnnounceOverhead+bytes)
}

// mergeAttributes returns the changed map and its length as JSON, in bytes.
func mergeAttributes(what string, present, changed map[string]string) (map[string]string, int, *signal.Error) {
	merged, err := signal.MergeAttributes(what, present, changed)
	if err != nil {
		return nil, 0, refuse(signal.CodeInvalid, "%v", err)
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return nil, 0, refuse(signal.CodeInvalid, "%v", err)
	}
	return merged, len(text), nil
}
