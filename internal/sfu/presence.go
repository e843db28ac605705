package sfu

import (
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// presence is a participant as the others in the room see it: a local participant, or the mirror of a participant whose
// home is another node.
type presence struct {
	identity string
	session  string
	// number identifies the participant for clients of the VR2Gather dialect, if numbered is set.
	number       uint32
	numbered     bool
	publications []*publication
	// attributes describe the participant to others. attributesBytes is their length as JSON. The map does not change.
	attributes      map[string]string
	attributesBytes int
	// audience is set if the participant is not announced to others, only counted.
	audience bool
}

func (p *presence) publication(name string) *publication {
	for _, publication := range p.publications {
		if publication.Description.Name == name {
			return publication
		}
	}
	return nil
}

// describe returns the description of the participant for others.
func (p *presence) describe() signal.Participant {
	d := signal.Participant{Identity: p.identity, Publications: []volumetric.Publication{}}
	for _, publication := range announced(p.publications) {
		d.Publications = append(d.Publications, publication.Description)
	}
	d.Attributes, d.Muted = p.attributes, p.mutings()
	return d
}

// mutings returns the muted publications of a participant.
func (p *presence) mutings() (list []signal.MuteState) {
	for _, publication := range p.publications {
		if publication.muted() {
			list = append(list, publication.mute)
		}
	}
	return list
}

// describedBytes returns the length of the descriptions of the participant's publications and of its attributes as
// JSON, in bytes.
func (p *presence) describedBytes() int { return describedBytes(p.publications) + p.attributesBytes }

// placePictures sets the publication beside which pictures of the participant stand: the first video that is not a
// picture.
func (p *presence) placePictures() {
	var body *subscriber.Publication
	for _, publication := range p.publications {
		if d := &publication.Description; d.Kind == volumetric.KindVideo && d.Picture == nil {
			body = publication.Publication
			break
		}
	}
	for _, publication := range p.publications {
		if publication.Description.Picture != nil {
			publication.Beside = body
		}
	}
}

// succeed subscribes participants to the next publication of a kind after the first publication has ended. The clients
// can receive only one publication of a kind.
func (p *presence) succeed(successors []*participant, kind volumetric.Kind) {
	for _, other := range successors {
		if next := other.profile.first(p.publications, kind); next >= 0 {
			other.subscribe(announced(p.publications[next : next+1]))
		}
	}
}

// presences returns the local participants and the mirrors in the room except one, sorted by identity.
func (r *Room) presences(except *presence) []*presence {
	var list []*presence
	for p := range r.unordered {
		if p != except {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *presence) int { return strings.Compare(a.identity, b.identity) })
	return list
}

// unordered yields the participants and the mirrors that others see, in any order, for range.
func (r *Room) unordered(yield func(*presence) bool) {
	for _, p := range r.participants {
		if !yield(&p.presence) {
			return
		}
	}
	r.span.eachShown(yield)
}

// presence returns the participant or the mirror with an identity, nil if there is none.
func (r *Room) presence(identity string) *presence {
	if p := r.participants[identity]; p != nil {
		return &p.presence
	}
	return r.span.shown(identity)
}

// describe returns the descriptions of all announced participants except one.
func (r *Room) describe(except *participant) []signal.Participant {
	list := []signal.Participant{}
	for _, p := range r.presences(&except.presence) {
		if !p.audience {
			list = append(list, p.describe())
		}
	}
	return list
}

// publication returns a publication by its names, nil if there is none.
func (r *Room) publication(ref volumetric.PublicationRef) *publication {
	if p := r.presence(ref.Participant); p != nil {
		return p.publication(ref.Publication)
	}
	return nil
}

// publications returns all publications in the room, for range.
func (r *Room) publications(yield func(*publication) bool) {
	for _, p := range r.participants {
		for _, publication := range p.publications {
			if !yield(publication) {
				return
			}
		}
	}
	r.span.publications(yield)
}

// publishedByOthers returns the announced publications of all participants except one.
func (r *Room) publishedByOthers(p *participant) []*publication {
	var publications []*publication
	for _, other := range r.presences(&p.presence) {
		publications = append(publications, announced(other.publications)...)
	}
	return publications
}

// second reports whether the publisher has an earlier publication of the same kind that a client can receive.
func (r *Room) second(f *Profile, p *publication) bool {
	owner := r.presence(p.Ref.Participant)
	return owner != nil && f.second(owner.publications, p)
}

// successors returns the participants that receive only one publication of a kind from each publisher and receive this
// one.
func (r *Room) successors(owner *presence, p *publication) (list []*participant) {
	for _, other := range r.othersThan(owner) {
		if other.profile.OnePerKind && !other.profile.second(owner.publications, p) {
			list = append(list, other)
		}
	}
	return list
}

// othersThan returns the local participants except the owner of a publication, sorted by identity.
func (r *Room) othersThan(owner *presence) []*participant {
	return r.participants.others(r.participants[owner.identity])
}

// choosable returns the video publications that a participant receives and that its protocol can carry.
func (r *Room) choosable(p *participant) (publications []Choosable) {
	for _, other := range r.presences(&p.presence) {
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

// firstFreeNumber is the first number of participants whose identity does not end in a number. Numbers in identities
// are positions in a list of users, which are smaller.
const firstFreeNumber = 1000

// assignNumber assigns the number by which VR2Gather clients know a participant: the number at the end of its identity,
// if there is one and no other participant has the number; otherwise a free number from firstFreeNumber.
func (r *Room) assignNumber(p *participant) {
	if p.numbered {
		return
	}
	digits := p.identity[len(strings.TrimRight(p.identity, "0123456789")):]
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n == 0 || r.byNumber(uint32(n)) != nil {
		for n = firstFreeNumber; r.byNumber(uint32(n)) != nil; n++ {
		}
	}
	p.number, p.numbered = uint32(n), true
}

// byNumber returns the participant with a number, nil if there is none.
func (r *Room) byNumber(number uint32) *presence {
	for p := range r.unordered {
		if p.numbered && p.number == number {
			return p
		}
	}
	return nil
}
