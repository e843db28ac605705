package sfu

import (
	"crypto/rand"
	"crypto/subtle"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/sessionrecord"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
)

// JoinRequest is the request of a client to join a room, as signalling has verified it.
type JoinRequest struct {
	Join     *signal.Join
	Room     string
	Identity string
	Grants   Grants
	// Bearer is the holder of the place, and Token the client's token.
	Bearer admission.Bearer
	Token  admission.Token
	// OwnsIdentity is set if no other client can use the identity: the client's token names the identity, or the server
	// asks for no token. Such a client needs no secret to take a place that is kept for its return.
	OwnsIdentity bool
	Outbox       Outbox
	// At is the time when the websocket was opened.
	At time.Time
	// Profile is the profile of the client's protocol, nil for signalling v1.
	Profile *Profile
	// Number is the client's number if its protocol identifies participants by numbers, otherwise nil.
	Number *uint32
	// Offer is the session description of a client that offers, otherwise nil.
	Offer *description.Description
	// Adopt is the session of another node that the client continues, nil for a new session. Join.Resume is ignored
	// then, unless this node has the session already.
	Adopt *Adoption
	// Watched is the participant whose publications the client receives, empty for all participants. The participant
	// must be in the room when the client joins.
	Watched string
}

// joinRequest asks a room for a place. The answer is sent to the outbox, and the session, nil on refusal, to the
// channel.
type joinRequest struct {
	JoinRequest
	// publications are the checked publications of the join.
	publications []checked
	result       chan<- joinResult
}

type joinResult struct {
	session *Session
	err     *signal.Error
}

// apply implements request.
func (q joinRequest) apply(r *Room) {
	p, err := r.admit(q.JoinRequest, q.publications)
	if err != nil {
		q.result <- joinResult{err: err}
		return
	}
	q.result <- joinResult{session: &Session{room: r, participant: p, outbox: q.Outbox}}
}

// reserved is the refusal of a client that has no right to a place that is kept.
const reserved = "the place of %q is reserved for its return, which needs the session's secret or a token for this " +
	"identity"

// checkEntry returns an error if a client may not have a new place in the room. present is the participant with the
// same identity, nil if there is none.
func (q *JoinRequest) checkEntry(r *Room, present *participant) *signal.Error {
	config := &r.node.config
	switch {
	case r.ending:
		return signal.Errorf(signal.CodeDraining, "the server is stopping")
	case !r.drained.IsZero():
		// The drain began after the join had passed the node's check.
		return signal.Errorf(signal.CodeDraining, "the server is about to stop")
	}
	if refused := r.node.exclusions.Refuse(q.Room, q.Identity, q.Token, r.now); refused != nil {
		return refused
	}
	switch {
	case present != nil && present.outbox != nil:
		return signal.Errorf(signal.CodeIdentityTaken, "%q is in the room", q.Identity)
	case present != nil && !q.OwnsIdentity && present.profile.Resumes:
		return signal.Errorf(signal.CodeIdentityTaken, reserved, q.Identity)
	case q.Bearer != "" && r.participants.placesOf(q.Bearer, present) >= config.BearerRoomPlaces:
		return signal.Errorf(signal.CodeLimit,
			"this token or address holds the maximum of %d places in this room (rooms.bearer_room_places)",
			config.BearerRoomPlaces)
	}
	if refused := r.span.checkIdentity(q); refused != nil {
		return refused
	}
	if r.present.Get(q.Identity) == nil {
		if refused := r.settings.CheckPlaces(r.present.Len(), r.node.config.ParticipantsPerRoom); refused != nil {
			return refused
		}
	}
	if q.Watched != "" {
		if refused := q.checkWatched(r); refused != nil {
			return refused
		}
	}
	if q.Number != nil {
		if other := r.present.ByNumber(*q.Number); other != nil && other.Identity != q.Identity {
			return signal.Errorf(signal.CodeIdentityTaken, "client number %d belongs to %q in the room", *q.Number,
				other.Identity)
		}
	}
	return nil
}

// checkWatched returns an error if the participant that a client asks to watch publishes nothing that the client asks
// for and can receive.
func (q *JoinRequest) checkWatched(r *Room) *signal.Error {
	watched := r.present.Get(q.Watched)
	if watched == nil {
		return notWatchable(q)
	}
	var wanted []*presence.Publication
	for _, publication := range watched.Publications {
		if q.Profile.wants(publication) {
			wanted = append(wanted, publication)
		}
	}
	if len(wanted) == 0 {
		return notWatchable(q)
	}
	var reasons []string
	for _, publication := range presence.Audible(presence.Announced(wanted)) {
		reason := ""
		if q.Profile.Withheld != nil {
			reason = q.Profile.Withheld(&publication.Description)
		}
		if reason == "" {
			return nil
		}
		reasons = append(reasons, publication.Ref.Publication+": "+reason)
	}
	if len(reasons) == 0 {
		return signal.Errorf(signal.CodeNotFound, "%q has muted all its publications", q.Watched)
	}
	return signal.Errorf(signal.CodeInvalidSDP, "no publication of %q can be received with this offer (%s)", q.Watched,
		strings.Join(reasons, "; "))
}

func notWatchable(q *JoinRequest) *signal.Error {
	if q.Profile != nil && q.Profile.Wants != nil {
		return signal.Errorf(signal.CodeNotFound, "%q publishes nothing of what the client asks for in room %q",
			q.Watched, q.Room)
	}
	return signal.Errorf(signal.CodeNotFound, "%q publishes nothing in room %q", q.Watched, q.Room)
}

// admit adds a participant to the room. All checks that may refuse the join precede the peer connection.
func (r *Room) admit(q JoinRequest, publications []checked) (*participant, *signal.Error) {
	present := r.participants[q.Identity]
	if refused := q.checkEntry(r, present); refused != nil {
		return nil, refused
	}
	moved := r.span.adoptable(&q)
	publications, replaced, refused := r.adopted(moved, &q, publications)
	if refused != nil {
		return nil, refused
	}
	p := newParticipant(r, &q)
	if q.Adopt != nil {
		q.Adopt.begin(p, moved, q.Join.Resume)
	}
	p.limitBitrate()
	if refused := r.checkRoom(p, publications); refused != nil {
		return nil, refused
	}
	if refused := r.announces(p.bearer, admission.AnnounceOverhead+encodedBytes(publications)); refused != nil {
		return nil, refused
	}
	connection, err := r.node.connect(r, p)
	if err != nil {
		p.log.Error("the peer connection could not be created", errorField(err))
		return nil, signal.Errorf(signal.CodeInternal, "the peer connection could not be created")
	}
	p.connect(connection)
	n := &arrival{JoinRequest: &q, p: p, moved: moved}
	n.takePlace(r, present)
	added := n.publish(r, publications, replaced)
	n.welcome(r)
	n.announce(r, added)
	n.start(r, added)
	return p, nil
}

// arrival is a join that the room has accepted. Its steps follow one another without a wait.
type arrival struct {
	*JoinRequest
	p *participant
	// moved is the mirror of the session that the join continues, nil if the node has none.
	moved *mirror
}

// restored returns the record from which the publications of the session are restored, nil if the session is new or has
// a mirror.
func (n *arrival) restored() *sessionrecord.Record {
	if n.moved != nil || n.Adopt == nil {
		return nil
	}
	return n.Adopt.Record
}

// takePlace adds the participant to the room. present is the participant that it replaces, nil if there is none.
func (n *arrival) takePlace(r *Room, present *participant) {
	p := n.p
	if present != nil {
		r.remove(present, "rejoined")
	}
	if n.moved != nil {
		r.span.adopt(n.moved, p, n.Adopt.Record == nil)
	} else {
		r.span.hideMirror(p.Identity)
		p.Audience = r.joinsAudience(p)
	}
	r.recorder.automatic()
	r.enter(p)
	r.node.rooms.Remember(p.Session, r)
	r.Begin()
	r.emitJoined(p)
	if n.moved == nil {
		p.log.Info("participant joined", zap.String("session", p.Session))
	}
}

// publish adds the publications of the join and ends those that they replace. publish returns the added publications
// that are announced.
func (n *arrival) publish(r *Room, publications []checked, replaced []string) []*presence.Publication {
	p := n.p
	for _, publication := range p.Publications {
		p.attachData(publication)
	}
	for _, name := range replaced {
		r.unpublish(p, p.Publication(name), true)
	}
	kept := len(p.Publications)
	for _, description := range publications {
		r.add(p, description)
		if c := n.restored(); c != nil {
			c.RestorePublication(p.Publications[len(p.Publications)-1])
		}
	}
	r.census.Store(r.participants.census())
	return presence.Announced(p.Publications[kept:])
}

// welcome sends the client the reply and the state of the others.
func (n *arrival) welcome(r *Room) {
	reply := r.welcome(n.p, n.Join.ID, n.Adopt != nil)
	if n.Adopt != nil && n.Adopt.Record == nil {
		reply.Restored = new(bool)
	}
	n.p.send(reply)
	r.audience.welcome(n.p)
	n.p.sendPoses()
}

// announce tells the others and the other nodes the participant and its publications.
func (n *arrival) announce(r *Room, added []*presence.Publication) {
	p := n.p
	if n.moved == nil {
		r.audience.joined(&p.Presence, p)
	} else {
		for _, publication := range added {
			r.participants.share(p, &signal.Published{Participant: p.Identity, Publication: publication.Description})
		}
	}
	r.span.joined(p)
	if n.moved == nil && n.Adopt != nil && n.Adopt.Record == nil {
		// The client publishes its publications again.
		r.after(completeAfter, completeRequest{p})
	} else {
		r.span.completed(p)
	}
}

// start requests slots for the participant and for the others, and makes the connection negotiate.
func (n *arrival) start(r *Room, added []*presence.Publication) {
	p := n.p
	p.subscribe(r.present.PublishedByOthers(&p.Presence))
	r.announce(&p.Presence, added)
	if n.Adopt != nil {
		// The token of this join may grant less than the token on the former home.
		changed := r.regrant(p, p.grants, true)
		changed.send(p)
		p.sendWanted()
	}
	r.traceRequested(p, n.Join.FrameTimes)
	if n.Adopt != nil {
		p.sendTrace()
	}
	p.updateLines()
}

// welcome returns the reply to a join.
func (r *Room) welcome(p *participant, id string, resumed bool) *signal.Joined {
	config := r.node.config
	permissions := p.grants.permissions()
	return &signal.Joined{
		Header:       signal.Header{ID: id},
		Version:      signal.Version,
		Room:         r.name,
		Identity:     p.Identity,
		Session:      p.Session,
		Resumed:      resumed,
		Resume:       signal.ResumeGrant{Secret: p.secret, GraceMS: int(config.ResumeGrace.Milliseconds())},
		ICEServers:   r.node.iceServers(p.Session),
		Participants: r.present.Describe(&p.Presence),
		Limits: signal.Limits{
			TracksPerPublication: config.TracksPerPublication,
			Publications:         config.PublicationsPerParticipant,
			FrameBytes:           config.FrameBytes,
			MessageBytes:         signal.MaxMessageBytes,
		},
		Multipath:    p.asked.multipath != nil,
		Metadata:     r.metadata,
		Attributes:   p.Attributes,
		Permissions:  &permissions,
		Muted:        p.Mutings(),
		DataReceived: p.data.Received.Last(),
		Recorded:     r.recorder.active(),
	}
}

// connect attaches a peer connection to the participant.
func (p *participant) connect(c *connection) {
	p.connection = c
	p.subscriber.Connect(c.Receiver, p.room.node.config.Allocation)
	c.Receiver.TraceFrames(p.frameTimes.Wanted)
}

// resumeRequest asks a room to resume a session.
type resumeRequest struct {
	JoinRequest
	result chan<- joinResult
}

// apply implements request.
func (q resumeRequest) apply(r *Room) {
	p := r.participants.bySession(q.Join.Resume.Session)
	if p == nil || !p.proves(q.Join.Resume.Secret) || p.Identity != q.Identity {
		q.result <- joinResult{err: sessionExpired()}
		return
	}
	if refused := r.node.exclusions.Refuse(q.Room, q.Identity, q.Token, r.now); refused != nil {
		q.result <- joinResult{err: refused}
		return
	}
	if p.connection.over && !q.Join.Resume.NewConnection {
		r.expel(p, signal.CodeConnection, "the client ended the peer connection")
		q.result <- joinResult{err: signal.Errorf(signal.CodeResume,
			"the session's peer connection has ended, and the join requests no new connection: "+
				"join again without resume")}
		return
	}
	if p.outbox != nil {
		p.outbox.Close(signal.CodeReplaced, "the session continued over another connection")
	}
	p.outbox = q.Outbox
	p.detachments++
	p.former, p.secret = q.Join.Resume.Secret, rand.Text()
	p.token = q.Token
	p.granted = q.Grants
	changed := r.regrant(p, q.Grants.with(p.permissions), q.Join.Resume.NewConnection)
	r.span.changed(p)
	p.send(r.welcome(p, q.Join.ID, true))
	changed.send(p)
	r.audience.welcome(p)
	p.sendPoses()
	p.sendWanted()
	p.sendTrace()
	p.repeatData(q.Join.Resume.DataReceived)
	p.subscriber.RepeatBandwidth()
	if !r.drained.IsZero() {
		p.send(r.draining())
	}
	if q.Join.Resume.NewConnection {
		r.reconnect(p)
	} else {
		p.catchUp()
		if changed.receives {
			p.subscribe(r.present.PublishedByOthers(&p.Presence))
		}
	}
	p.log.Info("participant resumed", zap.Bool("new_connection", q.Join.Resume.NewConnection))
	q.result <- joinResult{session: &Session{room: r, participant: p, outbox: q.Outbox}}
}

// proves reports whether a secret resumes the session: the present secret, or the former secret as long as the reply
// with the present secret may have been lost.
func (p *participant) proves(secret string) bool {
	equal := func(own string) bool {
		return own != "" && subtle.ConstantTimeCompare([]byte(own), []byte(secret)) == 1
	}
	return equal(p.secret) || equal(p.former)
}

// catchUp repeats the messages that a resumed client may have missed, and restarts ICE on its connection. If the
// connection has not passed the offer since an earlier resume, the client receives the offer that will be passed.
func (p *participant) catchUp() {
	if former := p.pendingOffer; former != nil {
		p.pendingOffer = &pendingOffer{number: former.number, repeating: true}
		p.connection.answerTimer.set(p.room, p.room.node.config.AnswerTimeout,
			answerOverdue{p.connection, p.pendingOffer})
		if !former.repeating {
			p.connection.Do(peer.Repeat{Offer: former.number})
		}
	} else {
		p.repeatSlots()
	}
	if !p.connected {
		p.connection.connectTimer.set(p.room, p.room.node.config.ConnectTimeout, connectOverdue{p.connection})
	}
	p.connection.Do(peer.Restart{})
}

// repeatSlots repeats the assignments and the qualities of all slots.
func (p *participant) repeatSlots() {
	p.sendAssignments(p.subscriber.Slots.Assignments())
	p.sendSlotQualities(p.subscriber.Sending())
}

// reconnect gives a resumed client a new peer connection. Publications and choices stay; slots do not.
func (r *Room) reconnect(p *participant) {
	connection, err := r.node.connect(r, p)
	if err != nil {
		p.log.Error("the peer connection could not be created", errorField(err))
		r.expel(p, signal.CodeInternal, "the peer connection could not be created")
		return
	}
	p.connection.dismiss()
	p.connect(connection)
	p.connected = false
	p.pendingOffer = nil
	for _, publication := range p.Publications {
		p.attachData(publication)
	}
	p.subscriber.Slots.Release()
	p.subscriber.Slots = subscriber.NewSlots()
	p.subscribe(r.present.PublishedByOthers(&p.Presence))
	p.updateLines()
}

// graceOver removes a participant that did not resume in time.
type graceOver struct {
	participant *participant
	detachment  int
}

// apply implements request.
func (q graceOver) apply(r *Room) {
	if q.participant.outbox == nil && q.participant.detachments == q.detachment {
		r.remove(q.participant, "connection lost")
	}
}

// detachRequest reports that a websocket has ended.
type detachRequest struct {
	participant *participant
	outbox      Outbox
}

// apply implements request.
func (q detachRequest) apply(r *Room) {
	switch p := q.participant; {
	case p.gone:
		r.span.leftFormer(p, q.outbox)
	case p.outbox == q.outbox:
		if p.profile.Resumes {
			p.log.Info("websocket broke; the participant may resume")
		}
		p.detached()
	}
}
