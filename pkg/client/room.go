package client

import (
	"maps"
	"slices"
	"sync"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// room is the room as the server describes it: the other participants, and this client's own place in the room. Its
// methods are safe for concurrent use.
type room struct {
	mu sync.Mutex
	// joined is the last reply to a join. It is not changed.
	joined *signal.Joined
	// attributes and permissions are those of this client, metadata is that of the room.
	attributes  map[string]string
	metadata    map[string]string
	permissions signal.Permissions
	// participants are the other participants, by name.
	participants map[string]*member
	// recorded is set while the server records the room.
	recorded bool
	// audience is the number of participants that are not announced.
	audience int
}

// member is a participant of the room: its publications and its muted publications by name, and its attributes.
type member struct {
	publications map[string]volumetric.Publication
	muted        map[string]signal.MuteState
	attributes   map[string]string
}

// welcome stores the description in the reply to a join.
func (r *room) welcome(joined *signal.Joined) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined = joined
	r.attributes, r.metadata = joined.Attributes, joined.Metadata
	if joined.Permissions != nil {
		r.permissions = *joined.Permissions
	}
	// A message follows if there is an audience.
	r.recorded, r.audience = joined.Recorded, 0
	r.participants = make(map[string]*member, len(joined.Participants))
	for _, p := range joined.Participants {
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

// reply returns the reply to the last join.
func (r *room) reply() *signal.Joined {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.joined
}

// renew replaces the secret with which the session is resumed, unless the new one is empty.
func (r *room) renew(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if secret != "" {
		renewed := *r.joined
		renewed.Resume.Secret = secret
		r.joined = &renewed
	}
}

// Identity returns the participant's name in the room.
func (r *room) Identity() string { return r.reply().Identity }

// Room returns the room's name.
func (r *room) Room() string { return r.reply().Room }

// Participants returns the other participants of the room and their publications, sorted by name.
func (r *room) Participants() []signal.Participant {
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

// Audience returns the number of participants that are in the room and not among Participants: in a room with a large
// audience, participants that may not publish are not announced. The event Audience reports changes.
func (r *room) Audience() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.audience
}

// Recorded reports whether the server records the room. The event Recording reports changes.
func (r *room) Recorded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded
}

// Attributes returns the attributes of this client. Participants has those of the others.
func (r *room) Attributes() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.attributes)
}

// Metadata returns the metadata of the room.
func (r *room) Metadata() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.metadata)
}

// Permissions returns the permissions of this client.
func (r *room) Permissions() signal.Permissions {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.permissions
}

// publication finds a publication of a participant.
func (r *room) publication(ref volumetric.PublicationRef) (volumetric.Publication, bool) {
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
func (r *room) change(m signal.Message) Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m := m.(type) {
	case *signal.Pose:
		return posed(m)
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
		if m.Participant == r.joined.Identity {
			r.attributes = m.Attributes
		} else if p := r.participants[m.Participant]; p != nil {
			p.attributes = m.Attributes
		}
		return AttributesChanged{m.Participant, m.Attributes}
	case *signal.Metadata:
		r.metadata = m.Metadata
		return MetadataChanged{m.Metadata}
	case *signal.Muted:
		if p := r.participants[m.Participant]; p != nil {
			p.mute(m.MuteState)
		}
		ref := volumetric.PublicationRef{Participant: m.Participant, Publication: m.Publication}
		return Muted{Publication: ref, Own: m.Own, Operator: m.Operator}
	case *signal.PermissionsChanged:
		r.permissions = m.Permissions
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

// posed converts a pose from the server to an event.
func posed(m *signal.Pose) PoseChanged {
	scale, priority := m.Scale, m.Priority
	if scale == 0 {
		scale = 1
	}
	if priority == 0 {
		priority = 1
	}
	return PoseChanged{
		Publication: volumetric.PublicationRef{Participant: m.Participant, Publication: m.Publication},
		Pose: Pose{
			Position: m.Position, Orientation: m.Orientation, Scale: scale, Boxes: m.Boxes, Priority: priority,
		},
	}
}
