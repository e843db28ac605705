package sfu

import (
	"crypto/rand"
	"crypto/subtle"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
)

// JoinRequest is what signalling knows when a client wants to join.
type JoinRequest struct {
	Join     *signal.Join
	Room     string
	Identity string
	Grants   Grants
	// Bearer is whom the place counts for, and Token is the client's.
	Bearer admission.Bearer
	Token  admission.Token
	// OwnsIdentity says that the identity is the client's own: its token names the identity, or nobody is asked for a
	// token. Such a client may take a place that is kept for a return without the secret.
	OwnsIdentity bool
	Outbox       Outbox
	// At is when the websocket was opened.
	At time.Time
	// Profile is that of the client's protocol, nil for signalling v1.
	Profile *Profile
	// Number is the client's number if its protocol knows participants by numbers, else nil.
	Number *uint32
}

// joinRequest asks a room for a place. The answer goes to the outbox; the session, nil on refusal, to the channel.
type joinRequest struct {
	JoinRequest
	// publications are those of the join, checked.
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

// mayEnter refuses somebody who has no place in the room. Present is who is kept there under the identity, if anybody
// is.
func (r *Room) mayEnter(q *JoinRequest, present *participant) *signal.Error {
	config := &r.node.config
	switch {
	case r.ending:
		return refuse(signal.CodeDraining, "the server stops")
	case !r.drained.IsZero():
		// The join was on its way when everybody was told.
		return refuse(signal.CodeDraining, "the server is about to stop")
	}
	if refused := r.node.exclusions.Refuse(q.Room, q.Identity, q.Token, r.now); refused != nil {
		return refused
	}
	switch {
	case present != nil && present.outbox != nil:
		return refuse(signal.CodeIdentityTaken, "%q is in the room", q.Identity)
	case present != nil && !q.OwnsIdentity && present.profile.Resumes:
		return refuse(signal.CodeIdentityTaken,
			"the place of %q is kept for its return, which takes the session's secret, or a token for this identity", q.Identity)
	case present == nil && len(r.participants) >= config.ParticipantsPerRoom:
		return refuse(signal.CodeLimit, "%d participants are the limit of a room", config.ParticipantsPerRoom)
	case q.Bearer != "" && r.participants.placesOf(q.Bearer, present) >= config.BearerRoomPlaces:
		return refuse(signal.CodeLimit, "%d places in this room are held by this token or address (rooms.bearer_room_places)",
			config.BearerRoomPlaces)
	}
	if q.Number != nil {
		if other := r.participants.byNumber(*q.Number); other != nil && other != present {
			return refuse(signal.CodeIdentityTaken, "client %d is %q in the room", *q.Number, other.identity)
		}
	}
	return nil
}

// admit lets somebody new into the room. Everything that may refuse a join comes before the peer connection is made.
func (r *Room) admit(q JoinRequest, publications []checked) (*participant, *signal.Error) {
	present, returns := r.participants[q.Identity]
	if refused := r.mayEnter(&q, present); refused != nil {
		return nil, refused
	}
	p := &participant{
		room:     r,
		identity: q.Identity,
		session:  rand.Text(),
		secret:   rand.Text(),
		grants:   q.Grants,
		bearer:   q.Bearer,
		token:    q.Token,
		asked:    wishes{receive: q.Join.Receive, receiveData: q.Join.ReceiveData, publishData: q.Join.DataChannel},
		receive:  q.Join.Receive && q.Grants.Subscribe,
		deadline: time.Duration(q.Join.DeadlineMS) * time.Millisecond,
		log:      r.log.With(zap.String("participant", q.Identity)),
		outbox:   q.Outbox,
		profile:  &signallingProfile,
		joined:   q.At,

		pauses:     q.Join.Pauses,
		publishing: newPublishingLimit(&r.node.config),
	}
	p.useDataChannels()
	slots := subscriber.NewSlots()
	if q.Profile != nil {
		p.profile = q.Profile
	}
	if q.Number != nil {
		p.number, p.numbered = *q.Number, true
	}
	if p.profile.Named != nil {
		slots = subscriber.NewNamedSlots(r.node.config.MaxSlots)
	}
	p.subscriber = subscriber.New(slots, subscriber.NewChoices(r.node.config.ChoicesPerParticipant))
	p.subscriber.SetLimits(q.Join.BitrateLimits, r.node.config.ClaimedMin, r.node.engine.StartRate())
	if refused := r.checkRoom(p, publications); refused != nil {
		return nil, refused
	}
	if refused := r.announces(p.bearer, admission.AnnounceOverhead+encodedBytes(publications)); refused != nil {
		return nil, refused
	}
	connection, err := r.node.connect(r, p)
	if err != nil {
		p.log.Error("no peer connection", errorField(err))
		return nil, refuse(signal.CodeInternal, "no peer connection could be made")
	}
	p.connect(connection)
	if returns {
		r.remove(present, "joined anew")
	}
	r.participants[p.identity] = p
	r.node.remember(p)
	p.log.Info("participant joined", zap.String("session", p.session))
	for _, description := range publications {
		r.add(p, description)
	}
	r.census.Store(r.participants.census())
	p.send(r.welcome(p, q.Join.ID, false))
	p.tellPoses()
	r.participants.share(p, &signal.ParticipantJoined{Participant: p.describe()})
	p.subscribe(r.participants.publishedByOthers(p))
	r.announce(p, announced(p.publications))
	r.traceRequested(p, q.Join.FrameTimes)
	p.updateLines()
	return p, nil
}

// newPublishingLimit limits the publications of one participant, but those of its join.
func newPublishingLimit(config *Config) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(config.PublishRate), config.PublishBurst)
}

// welcome is the reply to a join.
func (r *Room) welcome(p *participant, id string, resumed bool) *signal.Joined {
	config := r.node.config
	return &signal.Joined{
		Header:       signal.Header{ID: id},
		Version:      signal.Version,
		Room:         r.name,
		Identity:     p.identity,
		Session:      p.session,
		Resumed:      resumed,
		Resume:       signal.ResumeGrant{Secret: p.secret, GraceMS: int(config.ResumeGrace.Milliseconds())},
		ICEServers:   r.node.iceServers(),
		Participants: r.participants.describe(p),
		Limits: signal.Limits{
			TracksPerPublication: config.TracksPerPublication,
			Publications:         config.PublicationsPerParticipant,
			FrameBytes:           config.FrameBytes,
			MessageBytes:         signal.MaxMessageBytes,
		},
	}
}

// resumeRequest asks a room to go on with a session.
type resumeRequest struct {
	JoinRequest
	result chan<- joinResult
}

// apply implements request.
func (q resumeRequest) apply(r *Room) {
	p := r.participants.bySession(q.Join.Resume.Session)
	if p == nil || !p.proves(q.Join.Resume.Secret) || p.identity != q.Identity {
		q.result <- joinResult{err: refuse(signal.CodeResume, "the session is over, or the secret is not its own: join anew")}
		return
	}
	if refused := r.node.exclusions.Refuse(q.Room, q.Identity, q.Token, r.now); refused != nil {
		q.result <- joinResult{err: refused}
		return
	}
	if p.connection.over && !q.Join.Resume.NewConnection {
		r.expel(p, signal.CodeConnection, "the peer connection was ended")
		q.result <- joinResult{err: refuse(signal.CodeResume, "the session's peer connection is over, and no new one is asked for: join anew")}
		return
	}
	if p.outbox != nil {
		p.outbox.Close(signal.CodeReplaced, "the session goes on over another connection")
	}
	p.outbox = q.Outbox
	p.detachments++
	p.former, p.secret = q.Join.Resume.Secret, rand.Text()
	p.token = q.Token
	changed := r.regrant(p, q.Grants, q.Join.Resume.NewConnection)
	p.send(r.welcome(p, q.Join.ID, true))
	changed.tell(p)
	p.tellPoses()
	p.tellWanted()
	p.tellTrace()
	p.subscriber.RepeatBandwidth()
	if !r.drained.IsZero() {
		p.send(r.draining())
	}
	if q.Join.Resume.NewConnection {
		r.reconnect(p)
	} else {
		p.catchUp()
		if changed.receives {
			p.subscribe(r.participants.publishedByOthers(p))
		}
	}
	p.log.Info("participant resumed", zap.Bool("new_connection", q.Join.Resume.NewConnection))
	q.result <- joinResult{session: &Session{room: r, participant: p, outbox: q.Outbox}}
}

// proves tells whether a secret is one that resumes the session: the present one, or the one before as long as the reply that replaced it may be lost.
func (p *participant) proves(secret string) bool {
	equal := func(own string) bool {
		return own != "" && subtle.ConstantTimeCompare([]byte(own), []byte(secret)) == 1
	}
	return equal(p.secret) || equal(p.former)
}

// catchUp repeats to a client that came back what it may have missed, and starts ICE anew on the connection that it has.
func (p *participant) catchUp() {
	if p.pendingOffer != nil {
		// The header is left out: the outbox that had the offer first may be filling it in.
		offer := &signal.Offer{Offer: p.pendingOffer.Offer, SDP: p.pendingOffer.SDP, Media: p.pendingOffer.Media}
		p.pendingOffer = offer
		p.send(offer)
		p.connection.answerTimer.set(p.room, p.room.node.config.AnswerTimeout, answerOverdue{p.connection, offer})
	}
	p.tellAssignments(p.subscriber.Slots.Assignments())
	p.tellSlots(p.subscriber.Sending())
	if !p.connected {
		p.connection.connectTimer.set(p.room, p.room.node.config.ConnectTimeout, connectOverdue{p.connection})
	}
	p.connection.Do(peer.Restart{})
}

// reconnect gives a client that came back a new peer connection. Publications and choices stay; slots are made anew.
func (r *Room) reconnect(p *participant) {
	connection, err := r.node.connect(r, p)
	if err != nil {
		p.log.Error("no peer connection", errorField(err))
		r.expel(p, signal.CodeInternal, "no peer connection could be made")
		return
	}
	p.connection.dismiss()
	p.connect(connection)
	p.connected = false
	p.pendingOffer = nil
	for _, publication := range p.publications {
		p.attachData(publication)
	}
	p.subscriber.Slots.Release()
	p.subscriber.Slots = subscriber.NewSlots()
	p.subscribe(r.participants.publishedByOthers(p))
	p.updateLines()
}

// connect gives the participant a peer connection.
func (p *participant) connect(c *connection) {
	p.connection = c
	p.subscriber.Connect(c.Receiver, p.room.node.config.Allocation)
	c.Receiver.TraceFrames(p.tracing.wanted)
}

// graceOver removes a participant that did not come back in time.
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

// detachRequest says that a websocket has ended.
type detachRequest struct {
	participant *participant
	outbox      Outbox
}

// apply implements request.
func (q detachRequest) apply(*Room) {
	if p := q.participant; p.outbox == q.outbox && !p.gone {
		if p.profile.Resumes {
			p.log.Info("websocket broke, participant may resume")
		}
		p.detached()
	}
}
