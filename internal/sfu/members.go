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

// others returns the participants but one, in the order of their names.
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

// bySession finds a participant by its session, nil if there is none.
func (m members) bySession(session string) *participant {
	for _, p := range m {
		if p.session == session {
			return p
		}
	}
	return nil
}

// broadcast tells every participant but one. Each gets a message of its own, since outboxes may change it.
func (m members) broadcast(except *participant, message func() signal.Message) {
	for _, p := range m.others(except) {
		p.send(message())
	}
}

// share tells every participant but one by a message whose text is made once for all: descriptions of publications have
// up to description_bytes.
func (m members) share(except *participant, message signal.Message) {
	signal.Share(message)
	for _, p := range m.others(except) {
		p.send(message)
	}
}

// describe lists what a newcomer must know of the others.
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

// publication finds a publication by names, nil if there is none.
func (m members) publication(ref volumetric.PublicationRef) *publication {
	if p, ok := m[ref.Participant]; ok {
		return p.publication(ref.Publication)
	}
	return nil
}

// publishedByOthers returns the publications of every participant but one, as far as they have been announced.
func (m members) publishedByOthers(p *participant) []*publication {
	var publications []*publication
	for _, other := range m.others(p) {
		publications = append(publications, announced(other.publications)...)
	}
	return publications
}

// placesOf returns how many participants have their place by a bearer, without one that is about to be replaced.
func (m members) placesOf(b admission.Bearer, replaced *participant) (places int) {
	for _, p := range m {
		if p.bearer == b && p != replaced {
			places++
		}
	}
	return places
}

// firstFreeNumber is the first number of participants whose identity ends in none: numbers in identities are
// positions in a list of users.
const firstFreeNumber = 1000

// giveNumber gives a participant the number by which clients that know participants by numbers know it: the number that
// its identity ends in, if there is one and no other participant has it.
func (m members) giveNumber(p *participant) {
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

// byNumber finds a participant by its number, nil if there is none.
func (m members) byNumber(number uint32) *participant {
	for _, p := range m {
		if p.numbered && p.number == number {
			return p
		}
	}
	return nil
}

// choosable returns the publications of video that a participant is sent, as far as its protocol can carry them.
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
