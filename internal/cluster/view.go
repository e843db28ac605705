package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// room is a room that this node has entered, with the claims as the events have reported them.
type room struct {
	name, key string
	shown     map[string]shown
	// contests are the identities of participants of this node that other claims contest, with the time when the
	// contest began.
	contests map[string]time.Time
}

// shown is the claim of an identity that the events have reported.
type shown struct {
	home         Home
	participant  *Participant
	live         bool
	detached     bool
	publications []*Publication
}

// views are the rooms of this node with the claims of all nodes: the journal of this node, the tombstones, and the
// mirrors of the others.
type views struct {
	*nodes
	journal    journal
	tombstones tombstones
	rooms      map[string]*room
	byKey      map[string]*room
}

// claims returns all claims of an identity that no tombstone covers. local is the record of this node, nil if there is
// none; covering is the tombstone that covers it.
func (v *views) claims(room, identity string) (claims []candidate, local *record, covering *Tombstone) {
	if l := v.journal.rooms[room]; l != nil {
		if local = l.content[identity]; local != nil {
			covering = v.tombstones.covering(room, local.participant)
			if covering == nil && !local.superseded {
				claims = append(claims, candidate{home: v.home(), record: local, live: local.participant.Live})
			}
		}
	}
	add := func(p *peer) {
		m := p.mirrors[room]
		if m == nil || m.content[identity] == nil {
			return
		}
		remote := m.content[identity]
		if v.tombstones.covering(room, remote.participant) == nil {
			claims = append(claims, candidate{home: p.home, record: remote, peer: p,
				live: remote.participant.Live && !m.detached, detached: m.detached})
		}
	}
	for _, p := range v.peers {
		add(p)
	}
	for _, p := range v.former {
		add(p)
	}
	return claims, local, covering
}

// refresh chooses the winner of an identity and reports the difference to the claim that was reported before. reason is
// the reason if the claim is gone.
func (v *views) refresh(now time.Time, in *room, identity string, reason LeftReason) {
	claims, local, covering := v.claims(in.name, identity)
	if covering != nil && !local.superseded {
		v.removeLocal(in, local, covering)
	}
	winner := choose(claims)
	if winner >= 0 && local != nil && covering == nil && !local.superseded && claims[winner].peer != nil {
		if code, decided := v.decide(now, in, claims, winner); decided {
			v.supersede(in, local, code, &claims[winner])
		} else {
			winner = slices.IndexFunc(claims, func(c candidate) bool { return c.peer == nil })
		}
	} else {
		delete(in.contests, identity)
	}
	before, present := in.shown[identity]
	if winner < 0 {
		delete(in.shown, identity)
		if present && before.home != v.home() {
			v.left(in, &before, v.reasonFor(in, &before, reason))
		}
		return
	}
	won := &claims[winner]
	in.shown[identity] = shown{won.home, won.participant, won.live, won.detached, won.publications}
	switch {
	case won.peer == nil:
		if present && before.home != v.home() && before.participant.Session != won.participant.Session {
			v.left(in, &before, LeftReplaced)
		}
	case !present || before.home == v.home():
		v.emit(ParticipantJoined{in.name, won.claim()})
	case before.participant.Session != won.participant.Session:
		v.left(in, &before, LeftReplaced)
		v.emit(ParticipantJoined{in.name, won.claim()})
	case before.home != won.home:
		v.emit(ParticipantMoved{in.name, before.home, won.claim()})
	default:
		v.compare(in, &before, won)
	}
}

// removeLocal reports that a tombstone covers a participant of this node.
func (v *views) removeLocal(in *room, local *record, covering *Tombstone) {
	local.superseded = true
	p := local.participant
	if covering.Kind == TombstoneSession {
		v.emit(Superseded{Room: in.name, Identity: p.Identity, Session: p.Session, Code: signal.CodeReplaced})
		return
	}
	v.emit(Kicked{in.name, p.Identity, p.Session})
}

// decide reports whether the local claim of a contest is to be closed, and the code. A local participant that joined
// later is closed only after a beat has confirmed the other claim since the contest began.
func (v *views) decide(now time.Time, in *room, claims []candidate, winner int) (signal.Code, bool) {
	won := &claims[winner]
	local := &claims[slices.IndexFunc(claims, func(c candidate) bool { return c.peer == nil })]
	identity := local.participant.Identity
	switch {
	case local.beatenInSession(claims):
		return signal.CodeReplaced, true
	case won.live && !local.live:
		return signal.CodeReplaced, true
	}
	since, contested := in.contests[identity]
	if !contested {
		in.contests[identity] = now
		return "", false
	}
	p := won.peer
	if !p.beats() || !p.agreed || p.unchecked[in.key] || !p.beat.After(since) {
		return "", false
	}
	return signal.CodeIdentityTaken, true
}

// supersede reports that another claim has the identity of a participant of this node.
func (v *views) supersede(in *room, local *record, code signal.Code, by *candidate) {
	p := local.participant
	local.superseded = true
	delete(in.contests, p.Identity)
	v.emit(Superseded{Room: in.name, Identity: p.Identity, Session: p.Session, Code: code, By: by.home,
		Moved: by.participant.Session == p.Session})
}

// reasonFor returns the reason for which a claim is gone: that of the tombstone that covers it, or the one given.
func (v *views) reasonFor(in *room, s *shown, reason LeftReason) LeftReason {
	t := v.tombstones.covering(in.name, s.participant)
	switch {
	case t == nil || t.Kind == TombstoneSession:
		return reason
	case t.Kind == TombstoneRoom:
		return LeftClosed
	default:
		return LeftKicked
	}
}

func (v *views) left(in *room, s *shown, reason LeftReason) {
	v.emit(ParticipantLeft{Room: in.name, Home: s.home, Identity: s.participant.Identity,
		Session: s.participant.Session, Reason: reason})
}

// compare reports the differences between the claim that was reported and the present one. Session and home are the
// same.
func (v *views) compare(in *room, before *shown, won *candidate) {
	if before.participant != won.participant && !before.participant.equal(won.participant) {
		v.emit(ParticipantChanged{in.name, won.claim()})
	}
	if !before.detached && won.detached {
		v.emit(ParticipantDetached{in.name, won.claim()})
	}
	was := make(map[string]*Publication, len(before.publications))
	for _, p := range before.publications {
		was[p.Description.Name] = p
	}
	identity := won.participant.Identity
	ref := func(name string) volumetric.PublicationRef {
		return volumetric.PublicationRef{Participant: identity, Publication: name}
	}
	kept := make(map[string]bool, len(won.publications))
	for _, p := range won.publications {
		if old := was[p.Description.Name]; old != nil && old.ID == p.ID {
			kept[p.Description.Name] = true
		}
	}
	for _, p := range before.publications {
		if name := p.Description.Name; !kept[name] {
			v.emit(PublicationRemoved{in.name, before.home, ref(name)})
		}
	}
	for _, p := range won.publications {
		name := p.Description.Name
		switch {
		case !kept[name]:
			v.emit(PublicationAdded{in.name, won.home, ref(name), *p})
		case p != was[name] && !p.equal(was[name]):
			v.emit(PublicationChanged{in.name, won.home, ref(name), *p})
		}
	}
	if before.detached && !won.detached {
		v.emit(ParticipantBack{in.name, won.claim()})
	}
}

// refreshAll refreshes identities in their order.
func (v *views) refreshAll(now time.Time, in *room, identities map[string]bool, reason LeftReason) {
	for _, identity := range slices.Sorted(maps.Keys(identities)) {
		v.refresh(now, in, identity, reason)
	}
}

// Winner returns the claim that has an identity in a room.
func (v *views) Winner(room, identity string) (Claim, bool) {
	in := v.rooms[room]
	if in == nil {
		return Claim{}, false
	}
	s, ok := in.shown[identity]
	if !ok {
		return Claim{}, false
	}
	return s.claim(), true
}

// Claim returns the claim of a session in a room of this node.
func (v *views) Claim(room, session string) (Claim, bool) {
	in := v.rooms[room]
	if in == nil {
		return Claim{}, false
	}
	for _, s := range in.shown {
		if s.participant.Session == session {
			return s.claim(), true
		}
	}
	return Claim{}, false
}

// View returns the participants of a room of this node, local and remote, in the order of identities.
func (v *views) View(room string) []Claim {
	in := v.rooms[room]
	if in == nil {
		return nil
	}
	claims := make([]Claim, 0, len(in.shown))
	for _, identity := range slices.Sorted(maps.Keys(in.shown)) {
		s := in.shown[identity]
		claims = append(claims, s.claim())
	}
	return claims
}

func (s *shown) claim() Claim {
	return (&candidate{home: s.home, live: s.live, detached: s.detached,
		record: &record{participant: s.participant, publications: s.publications}}).claim()
}

// Has reports whether this node has entered a room.
func (v *views) Has(room string) bool { return v.rooms[room] != nil }
