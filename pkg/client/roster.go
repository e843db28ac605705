package client

import (
	"maps"
	"slices"
	"sync"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// member is a participant of the room: its publications and its muted publications by name, and its attributes.
type member struct {
	publications map[string]volumetric.Publication
	muted        map[string]signal.MuteState
	attributes   map[string]string
}

// roster are the other participants of the room, by name. Its methods are safe for concurrent use.
type roster struct {
	mu           sync.Mutex
	participants map[string]*member
	// recorded is set while the server records the room.
	recorded bool
	// audience is the number of participants that are not announced.
	audience int
}

// set replaces all participants and the state of the recording.
func (r *roster) set(participants []signal.Participant, recorded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A message follows if there is an audience.
	r.recorded, r.audience = recorded, 0
	r.participants = make(map[string]*member, len(participants))
	for _, p := range participants {
		r.participants[p.Identity] = newMember(p)
	}
}

func newMember(p signal.Participant) *member {
	m := &member{
		publications: make(map[string]volumetric.Publication, len(p.Publications)),
		muted:        make(map[string]signal.MuteState, len(p.Muted)), attributes: p.Attributes,
	}
	for _, publication := range p.Publications {
		m.publications[publication.Name] = publication
	}
	for _, state := range p.Muted {
		m.muted[state.Publication] = state
	}
	return m
}

// list returns the participants, sorted by identity, and their publications, sorted by name.
func (r *roster) list() []signal.Participant {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []signal.Participant{}
	for _, identity := range slices.Sorted(maps.Keys(r.participants)) {
		m := r.participants[identity]
		p := signal.Participant{Identity: identity, Attributes: maps.Clone(m.attributes)}
		for _, name := range slices.Sorted(maps.Keys(m.publications)) {
			p.Publications = append(p.Publications, m.publications[name])
		}
		for _, name := range slices.Sorted(maps.Keys(m.muted)) {
			p.Muted = append(p.Muted, m.muted[name])
		}
		list = append(list, p)
	}
	return list
}

// isRecorded reports whether the server records the room.
func (r *roster) isRecorded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded
}

// audienceSize returns the number of participants that are not announced.
func (r *roster) audienceSize() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.audience
}

// publication finds a publication of a participant.
func (r *roster) publication(ref volumetric.PublicationRef) (volumetric.Publication, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.participants[ref.Participant]
	if m == nil {
		return volumetric.Publication{}, false
	}
	p, ok := m.publications[ref.Publication]
	return p, ok
}

// change takes a message of the server about the room, and returns the event for the program, nil if the message is
// about something else. Messages about this client itself change no participant.
func (r *roster) change(m signal.Message) Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m := m.(type) {
	case *signal.ParticipantJoined:
		r.participants[m.Participant.Identity] = newMember(m.Participant)
		return ParticipantJoined{m.Participant}
	case *signal.ParticipantLeft:
		delete(r.participants, m.Identity)
		return ParticipantLeft{m.Identity, m.Reason}
	case *signal.Published:
		if p := r.participants[m.Participant]; p != nil {
			p.publications[m.Publication.Name] = m.Publication
		}
		return Published{m.Participant, m.Publication}
	case *signal.Unpublished:
		if p := r.participants[m.Participant]; p != nil {
			delete(p.publications, m.Publication)
			delete(p.muted, m.Publication)
		}
		return Unpublished{m.PublicationRef}
	case *signal.Recording:
		r.recorded = m.Active
		return Recording{m.Active}
	case *signal.Audience:
		r.audience = m.Count
		return Audience{m.Count}
	case *signal.Attributes:
		if p := r.participants[m.Participant]; p != nil {
			p.attributes = m.Attributes
		}
		return AttributesChanged{m.Participant, m.Attributes}
	case *signal.Metadata:
		return MetadataChanged{m.Metadata}
	case *signal.Muted:
		if p := r.participants[m.Participant]; p != nil {
			p.mute(m.MuteState)
		}
		ref := volumetric.PublicationRef{Participant: m.Participant, Publication: m.Publication}
		return Muted{Publication: ref, Own: m.Own, Operator: m.Operator}
	case *signal.PermissionsChanged:
		return PermissionsChanged{m.Permissions}
	}
	return nil
}

// mute sets the muting of a publication.
func (m *member) mute(state signal.MuteState) {
	if state.Own || state.Operator {
		m.muted[state.Publication] = state
	} else {
		delete(m.muted, state.Publication)
	}
}
