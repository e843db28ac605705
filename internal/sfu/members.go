package sfu

import (
	"slices"
	"strings"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
)

// members are the participants of a room, by identity. They belong to the room's goroutine.
type members map[string]*participant

// others returns all participants except one, sorted by identity.
func (m members) others(except *participant) []*participant {
	var others []*participant
	for _, p := range m {
		if p != except {
			others = append(others, p)
		}
	}
	slices.SortFunc(others, func(a, b *participant) int { return strings.Compare(a.identity, b.identity) })
	return others
}

// bySession returns the participant of a session, nil if there is none.
func (m members) bySession(session string) *participant {
	for _, p := range m {
		if p.session == session {
			return p
		}
	}
	return nil
}

// broadcast sends a message to all participants except one. Each participant gets its own message, because outboxes may
// change messages.
func (m members) broadcast(except *participant, message func() signal.Message) {
	for _, p := range m.others(except) {
		p.send(message())
	}
}

// share sends a message to all participants except one. The message is encoded once, because descriptions of
// publications have up to Config.DescriptionBytes.
func (m members) share(except *participant, message signal.Message) {
	signal.Share(message)
	for _, p := range m.others(except) {
		p.send(message)
	}
}

// census counts participants and publications.
func (m members) census() *census {
	c := &census{participants: len(m)}
	for _, p := range m {
		c.publications += len(p.publications)
	}
	return c
}

// placesOf returns the number of participants with a bearer, except a participant that is about to be replaced.
func (m members) placesOf(b admission.Bearer, replaced *participant) (places int) {
	for _, p := range m {
		if p.bearer == b && p != replaced {
			places++
		}
	}
	return places
}
