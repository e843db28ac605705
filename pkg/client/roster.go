package client

import (
	"maps"
	"slices"
	"sync"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// roster are the other participants of the room with their publications, by name. Its methods are safe for concurrent
// use.
type roster struct {
	mu           sync.Mutex
	participants map[string]map[string]volumetric.Publication
	// recorded is set while the server records the room.
	recorded bool
}

// set replaces all participants and the state of the recording.
func (r *roster) set(participants []signal.Participant, recorded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = recorded
	r.participants = make(map[string]map[string]volumetric.Publication, len(participants))
	for _, p := range participants {
		r.participants[p.Identity] = publicationsByName(p.Publications)
	}
}

func publicationsByName(list []volumetric.Publication) map[string]volumetric.Publication {
	byName := make(map[string]volumetric.Publication, len(list))
	for _, p := range list {
		byName[p.Name] = p
	}
	return byName
}

// list returns the participants, sorted by identity, and their publications, sorted by name.
func (r *roster) list() []signal.Participant {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []signal.Participant{}
	for _, identity := range slices.Sorted(maps.Keys(r.participants)) {
		p := signal.Participant{Identity: identity}
		for _, name := range slices.Sorted(maps.Keys(r.participants[identity])) {
			p.Publications = append(p.Publications, r.participants[identity][name])
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

// publication finds a publication of a participant.
func (r *roster) publication(ref volumetric.PublicationRef) (volumetric.Publication, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.participants[ref.Participant][ref.Publication]
	return p, ok
}

// change takes a message of the server about the room, and returns the event for the program, nil if the message is
// about something else.
func (r *roster) change(m signal.Message) Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m := m.(type) {
	case *signal.ParticipantJoined:
		r.participants[m.Participant.Identity] = publicationsByName(m.Participant.Publications)
		return ParticipantJoined{m.Participant}
	case *signal.ParticipantLeft:
		delete(r.participants, m.Identity)
		return ParticipantLeft{m.Identity, m.Reason}
	case *signal.Published:
		if byName, ok := r.participants[m.Participant]; ok {
			byName[m.Publication.Name] = m.Publication
		}
		return Published{m.Participant, m.Publication}
	case *signal.Unpublished:
		delete(r.participants[m.Participant], m.Publication)
		return Unpublished{m.PublicationRef}
	case *signal.Recording:
		r.recorded = m.Active
		return Recording{m.Active}
	}
	return nil
}
