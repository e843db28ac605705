package sfu

import (
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// roster has the participants of a room and their publications. It belongs to the room's goroutine.
type roster struct {
	participants members
	// span connects the room to the same room on other nodes, nil without a cluster.
	span *span
	// descriptionBytes is the limit of checkDescriptions.
	descriptionBytes int
}

// size returns the number of participants on all nodes.
func (r *roster) size() int { return len(r.participants) + r.span.size() }

// presences returns the local participants and the mirrors in the room except one, sorted by identity.
func (r *roster) presences(except *presence) []*presence {
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
func (r *roster) unordered(yield func(*presence) bool) {
	for _, p := range r.participants {
		if !yield(&p.presence) {
			return
		}
	}
	r.span.eachShown(yield)
}

// presence returns the participant or the mirror with an identity, nil if there is none.
func (r *roster) presence(identity string) *presence {
	if p := r.participants[identity]; p != nil {
		return &p.presence
	}
	return r.span.shown(identity)
}

// describe returns the descriptions of all announced participants except one.
func (r *roster) describe(except *participant) []signal.Participant {
	list := []signal.Participant{}
	for _, p := range r.presences(&except.presence) {
		if !p.audience {
			list = append(list, p.describe())
		}
	}
	return list
}

// publication returns a publication by its names, nil if there is none.
func (r *roster) publication(ref volumetric.PublicationRef) *publication {
	if p := r.presence(ref.Participant); p != nil {
		return p.publication(ref.Publication)
	}
	return nil
}

// publications returns all publications in the room, for range.
func (r *roster) publications(yield func(*publication) bool) {
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
func (r *roster) publishedByOthers(p *participant) []*publication {
	var publications []*publication
	for _, other := range r.presences(&p.presence) {
		publications = append(publications, announced(other.publications)...)
	}
	return publications
}

// second reports whether the publisher has an earlier publication of the same kind that a client can receive.
func (r *roster) second(f *Profile, p *publication) bool {
	owner := r.presence(p.Ref.Participant)
	return owner != nil && f.second(owner.publications, p)
}

// successors returns the participants that receive only one publication of a kind from each publisher and receive this
// one.
func (r *roster) successors(owner *presence, p *publication) (list []*participant) {
	for _, other := range r.othersThan(owner) {
		if other.profile.OnePerKind && !other.profile.second(owner.publications, p) {
			list = append(list, other)
		}
	}
	return list
}

// othersThan returns the local participants except the owner of a publication, sorted by identity.
func (r *roster) othersThan(owner *presence) []*participant {
	return r.participants.others(r.participants[owner.identity])
}

// choosable returns the video publications that a participant receives and that its protocol can carry.
func (r *roster) choosable(p *participant) (publications []Choosable) {
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
func (r *roster) assignNumber(p *participant) {
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
func (r *roster) byNumber(number uint32) *presence {
	for p := range r.unordered {
		if p.numbered && p.number == number {
			return p
		}
	}
	return nil
}

// recipients returns the named participants except the sender, or all others if there are no names. missing is the
// error about the first name that is not in the room.
func (r *roster) recipients(sender *participant, names []string) (list []*participant, missing *signal.Error) {
	if len(names) == 0 {
		return r.participants.others(sender), nil
	}
	named := make(map[string]bool, len(names))
	for _, name := range names {
		p := r.participants[name]
		switch {
		case p == nil && missing == nil && r.span.detached(name) != nil:
			missing = noAnswer(name)
		case p == nil && r.span.shown(name) != nil:
		case p == nil && missing == nil:
			missing = refuse(signal.CodeNotFound, "there is no participant %q in the room", name)
		case p != nil && p != sender && !named[name]:
			named[name] = true
			list = append(list, p)
		}
	}
	return list, missing
}

// nextLossy returns the number of a sender's next lossy message.
func (r *roster) nextLossy(sender string) int64 {
	p := r.participants[sender]
	if p == nil {
		return 0
	}
	p.data.lossy++
	return p.data.lossy
}

// joinsAudience reports whether a participant that joins is not announced to the others. The choice is that of the
// participant's home, and lasts until the participant may publish.
func (r *roster) joinsAudience(p *participant) bool {
	return !p.grants.Publish && r.size() >= announcedParticipants
}

// audienceSize returns the number of participants that are not announced.
func (r *roster) audienceSize() (n int) {
	for p := range r.unordered {
		if p.audience {
			n++
		}
	}
	return n
}

// checkDescriptions returns an error if the descriptions of all participants would not fit in the reply to a join.
// bytes is the length of the descriptions of the named participant.
func (r *roster) checkDescriptions(identity string, bytes int) *signal.Error {
	all := bytes
	for other := range r.unordered {
		if other.identity != identity {
			all += other.describedBytes()
		}
	}
	if limit := r.descriptionBytes; all > limit {
		return refuse(signal.CodeLimit,
			"the descriptions of publications and attributes would have %d bytes in this room, the limit is %d", all,
			limit)
	}
	return nil
}

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
