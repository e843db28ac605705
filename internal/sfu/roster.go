package sfu

import (
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// roster has the participants of a room and their publications. It belongs to the room's goroutine.
type roster struct {
	// present has the participants of all nodes, participants those whose home is this node.
	present      presence.Roster
	participants members
	// descriptionBytes is the limit of checkDescriptions.
	descriptionBytes int
}

// enter adds a participant whose home is this node.
func (r *roster) enter(p *participant) {
	r.participants[p.Identity] = p
	r.present.Add(&p.Presence)
}

// exit removes a participant whose home is this node.
func (r *roster) exit(p *participant) {
	delete(r.participants, p.Identity)
	r.present.Remove(&p.Presence)
}

// second reports whether the publisher has an earlier publication of the same kind that a client can receive.
func (r *roster) second(f *Profile, p *presence.Publication) bool {
	owner := r.present.Get(p.Ref.Participant)
	return owner != nil && f.second(owner.Publications, p)
}

// successors returns the participants that receive only one publication of a kind from each publisher and receive this
// one.
func (r *roster) successors(owner *presence.Presence, p *presence.Publication) (list []*participant) {
	for _, other := range r.othersThan(owner) {
		if other.profile.OnePerKind && !other.profile.second(owner.Publications, p) {
			list = append(list, other)
		}
	}
	return list
}

// othersThan returns the local participants except the owner of a publication, sorted by identity.
func (r *roster) othersThan(owner *presence.Presence) []*participant {
	return r.participants.others(r.participants[owner.Identity])
}

// choosable returns the video publications that a participant receives and that its protocol can carry.
func (r *roster) choosable(p *participant) (publications []Choosable) {
	for _, other := range r.present.Others(&p.Presence) {
		for _, publication := range presence.Announced(other.Publications) {
			d := &publication.Description
			if d.Kind != volumetric.KindVideo || !p.profile.reads(publication) ||
				p.profile.second(other.Publications, publication) {
				continue
			}
			publications = append(publications, Choosable{
				PublicationRef: publication.Ref, Number: publication.Number, Tiles: len(d.Tiles), Highest: d.Highest(),
			})
		}
	}
	return publications
}

// recipients returns the named participants except the sender, or all others if there are no names. missing is the
// error about the first name that is not in the room.
func (r *roster) recipients(sender *participant, names []string) (list []*participant, missing *signal.Error) {
	if len(names) == 0 {
		return r.participants.others(sender), nil
	}
	named := make(map[string]bool, len(names))
	for _, name := range names {
		p, other := r.participants[name], r.present.Get(name)
		switch {
		case p == nil && missing == nil && other != nil && other.Detached:
			missing = noAnswer(name)
		case p == nil && other != nil:
		case p == nil && missing == nil:
			missing = signal.Errorf(signal.CodeNotFound, "there is no participant %q in the room", name)
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
	return p.data.NextLossy()
}

// joinsAudience reports whether a participant that joins is not announced to the others. The choice is that of the
// participant's home, and lasts until the participant may publish.
func (r *roster) joinsAudience(p *participant) bool {
	return !p.grants.Publish && r.present.Len() >= announcedParticipants
}

// checkDescriptions returns an error if the descriptions of all participants would not fit in the reply to a join.
// bytes is the length of the descriptions of the named participant.
func (r *roster) checkDescriptions(identity string, bytes int) *signal.Error {
	if all, limit := bytes+r.present.DescribedBytes(identity), r.descriptionBytes; all > limit {
		return signal.Errorf(signal.CodeLimit,
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
	slices.SortFunc(others, func(a, b *participant) int { return strings.Compare(a.Identity, b.Identity) })
	return others
}

// bySession returns the participant of a session, nil if there is none.
func (m members) bySession(session string) *participant {
	for _, p := range m {
		if p.Session == session {
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
		c.publications += len(p.Publications)
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

const (
	// announcedParticipants is the number of participants of all nodes from which participants that may not publish are
	// not announced.
	announcedParticipants = 100
	// audienceInterval is the minimum interval of messages with the size of the audience.
	audienceInterval = time.Second
)

// audience announces the participants of a room to its local participants: by name, or by the number of those that may
// not publish. The room's goroutine owns the audience.
type audience struct {
	room *Room
	// sent is the number last sent. changed is set if the number may be another, which is sent from the time next.
	sent    int
	changed bool
	next    time.Time
}

// joined announces a participant without its publications, or counts it.
func (a *audience) joined(p *presence.Presence, except *participant) {
	r := a.room
	if p.Audience {
		a.change()
		return
	}
	r.participants.share(except, &signal.ParticipantJoined{Participant: p.Describe()})
	r.recorder.current.Joined(r.now, p)
}

// left announces the end of a participant.
func (a *audience) left(p *presence.Presence, except *participant, reason string) {
	r := a.room
	if p.Audience {
		a.change()
	} else {
		r.participants.share(except, &signal.ParticipantLeft{Identity: p.Identity, Reason: reason})
	}
	r.recorder.current.Left(r.now, p, reason)
	if len(r.participants) == 0 {
		r.recorder.stop("the last participant has left")
	}
}

// name announces a participant that was not announced before.
func (a *audience) name(p *presence.Presence) {
	if p.Audience {
		p.Audience = false
		a.joined(p, a.room.participants[p.Identity])
		a.change()
	}
}

// change sends the number of participants that are not announced, now or at the end of the interval.
func (a *audience) change() {
	a.changed = true
	a.send()
}

// send sends the number if a change is due.
func (a *audience) send() {
	r := a.room
	switch {
	case !a.changed:
	case r.now.Before(a.next):
		r.wakeBy(a.next)
	default:
		a.changed = false
		if n := r.present.AudienceSize(); n != a.sent {
			a.sent, a.next = n, r.now.Add(audienceInterval)
			r.participants.share(nil, &signal.Audience{Count: n})
		}
	}
}

// welcome sends a new participant the number last sent to the others, if there is an audience.
func (a *audience) welcome(p *participant) {
	if a.sent > 0 {
		p.send(&signal.Audience{Count: a.sent})
	}
}

// removeRequest removes one participant, or all participants if the identity is empty. Whether a participant was found
// is sent to result.
type removeRequest struct {
	identity string
	// session and before restrict the participants to a session, if it is not empty, and to joins before a time, if it
	// is not zero.
	session string
	before  time.Time
	code    signal.Code
	reason  string
	// until is the time until which the participant's token is banned from the room, zero for no ban.
	until  time.Time
	result chan<- bool
}

// The reasons of removals by an operator.
const (
	kickedReason = "removed by an operator"
	closedReason = "an operator closed the room"
)

// apply implements request. Other nodes remove their participants themselves.
func (q removeRequest) apply(r *Room) { q.result <- q.remove(r) || r.span.shown(q.identity) != nil }

// remove removes the local participants that the request names, and reports whether there was one.
func (q removeRequest) remove(r *Room) bool {
	found := false
	for _, p := range r.participants.others(nil) {
		if q.names(p) {
			found = true
			if !q.until.IsZero() {
				q.banToken(r, p)
			}
			r.expel(p, q.code, q.reason)
		}
	}
	return found
}

// banToken bans the token of a participant that is removed, on all nodes.
func (q removeRequest) banToken(r *Room, p *participant) {
	if p.token.ID == "" {
		return
	}
	ban := admission.Ban{Room: r.name, Identity: p.Identity, TokenID: p.token.ID, Until: q.until}
	if err := r.node.exclusions.Ban(ban, r.now); err != nil {
		p.log.Warn("the token of a removed participant could not be banned from the room", errorField(err))
	}
	r.span.tell(roomevent.Kick{Identity: p.Identity, Session: p.Session, TokenID: p.token.ID, Until: q.until})
}

// names reports whether a request names a participant.
func (q *removeRequest) names(p *participant) bool {
	return (q.identity == "" || p.Identity == q.identity) && (q.session == "" || p.Session == q.session) &&
		(q.before.IsZero() || p.joined.Before(q.before))
}
