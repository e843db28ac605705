package sfu

import (
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
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

// describe returns the descriptions of all participants except one.
func (m members) describe(except *participant) []signal.Participant {
	list := []signal.Participant{}
	for _, p := range m.others(except) {
		list = append(list, p.describe())
	}
	return list
}

// census counts participants and publications.
func (m members) census() *census {
	c := &census{participants: len(m)}
	for _, p := range m {
		c.publications += len(p.publications)
	}
	return c
}

// publication returns a publication by its names, nil if there is none.
func (m members) publication(ref volumetric.PublicationRef) *publication {
	if p, ok := m[ref.Participant]; ok {
		return p.publication(ref.Publication)
	}
	return nil
}

// publishedByOthers returns the announced publications of all participants except one.
func (m members) publishedByOthers(p *participant) []*publication {
	var publications []*publication
	for _, other := range m.others(p) {
		publications = append(publications, announced(other.publications)...)
	}
	return publications
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

// firstFreeNumber is the first number of participants whose identity does not end in a number. Numbers in identities
// are positions in a list of users, which are smaller.
const firstFreeNumber = 1000

// assignNumber assigns the number by which VR2Gather clients know a participant: the number at the end of its identity,
// if there is one and no other participant has the number; otherwise a free number from firstFreeNumber.
func (m members) assignNumber(p *participant) {
	if p.numbered {
		return
	}
	digits := p.identity[len(strings.TrimRight(p.identity, "0123456789")):]
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n == 0 || m.byNumber(uint32(n)) != nil {
		for n = firstFreeNumber; m.byNumber(uint32(n)) != nil; n++ {
		}
	}
	p.number, p.numbered = uint32(n), true
}

// byNumber returns the participant with a number, nil if there is none.
func (m members) byNumber(number uint32) *participant {
	for _, p := range m {
		if p.numbered && p.number == number {
			return p
		}
	}
	return nil
}

// choosable returns the video publications that a participant receives and that its protocol can carry.
func (m members) choosable(p *participant) (publications []Choosable) {
	for _, other := range m.others(p) {
		for _, publication := range announced(other.publications) {
			d := &publication.Description
			if d.Kind != volumetric.KindVideo || !p.profile.reads(publication) ||
				p.profile.second(other.publications, publication) {
				continue
			}
			publications = append(publications, Choosable{
				PublicationRef: publication.Ref, Number: publication.Number, Tiles: len(d.Tiles), Highest: d.Highest(),
			})
		}
	}
	return publications
}
