package sfu

import (
	"crypto/rand"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/data"
	"github.com/volsfu/volsfu/internal/sfu/presence"
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
		return refuse(signal.CodeDraining, "the server is stopping")
	case !r.drained.IsZero():
		// The drain began after the join had passed the node's check.
		return refuse(signal.CodeDraining, "the server is about to stop")
	}
	if refused := r.node.exclusions.Refuse(q.Room, q.Identity, q.Token, r.now); refused != nil {
		return refused
	}
	switch {
	case present != nil && present.outbox != nil:
		return refuse(signal.CodeIdentityTaken, "%q is in the room", q.Identity)
	case present != nil && !q.OwnsIdentity && present.profile.Resumes:
		return refuse(signal.CodeIdentityTaken, reserved, q.Identity)
	case q.Bearer != "" && r.participants.placesOf(q.Bearer, present) >= config.BearerRoomPlaces:
		return refuse(signal.CodeLimit,
			"this token or address holds the maximum of %d places in this room (rooms.bearer_room_places)",
			config.BearerRoomPlaces)
	}
	if refused := r.span.checkIdentity(q); refused != nil {
		return refused
	}
	if r.Get(q.Identity) == nil {
		if refused := r.settings.CheckPlaces(r.Len(), r.node.config.ParticipantsPerRoom); refused != nil {
			return refused
		}
	}
	if q.Watched != "" {
		if refused := q.checkWatched(r); refused != nil {
			return refused
		}
	}
	if q.Number != nil {
		if other := r.ByNumber(*q.Number); other != nil && other.Identity != q.Identity {
			return refuse(signal.CodeIdentityTaken, "client number %d belongs to %q in the room", *q.Number,
				other.Identity)
		}
	}
	return nil
}

// admit adds a participant to the room. All checks that may refuse the join precede the peer connection.
func (r *Room) admit(q JoinRequest, publications []checked) (*participant, *signal.Error) {
	present, returns := r.participants[q.Identity]
	if refused := q.checkEntry(r, present); refused != nil {
		return nil, refused
	}
	moved := r.span.adoptable(&q)
	publications, replaced, refused := r.adopted(moved, &q, publications)
	if refused != nil {
		return nil, refused
	}
	p := &participant{
		Presence: presence.Presence{Identity: q.Identity, Session: rand.Text()},
		room:     r,
		secret:   rand.Text(),
		granted:  q.Grants,
		grants:   q.Grants,
		bearer:   q.Bearer,
		token:    q.Token,
		asked: joinOptions{receive: q.Join.Receive, receiveData: q.Join.ReceiveData,
			publishData: q.Join.DataChannel, multipath: q.Join.Multipath,
			messageChannel: q.Join.MessageChannel},
		receive:  q.Join.Receive && q.Grants.Subscribe,
		deadline: time.Duration(q.Join.DeadlineMS) * time.Millisecond,
		offer:    q.Offer,
		watched:  q.Watched,
		log:      r.log.With(zap.String("participant", q.Identity)),
		outbox:   q.Outbox,
		profile:  &signallingProfile,
		joined:   q.At,

		pauses:     q.Join.Pauses,
		data:       data.NewFlow(r.node.config.dataLimits()),
		publishing: newPublishingLimit(&r.node.config),
	}
	p.useDataChannels()
	slots := subscriber.NewSlots()
	if q.Profile != nil {
		p.profile = q.Profile
	}
	if q.Number != nil {
		p.Number, p.Numbered = *q.Number, true
	}
	if p.profile.Named != nil {
		slots = subscriber.NewNamedSlots(r.node.config.MaxSlots)
	}
	p.subscriber = subscriber.New(slots, subscriber.NewChoices(r.node.config.ChoicesPerParticipant))
	p.limits = q.Join.BitrateLimits
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
		return nil, refuse(signal.CodeInternal, "the peer connection could not be created")
	}
	p.connect(connection)
	if returns {
		r.remove(present, "rejoined")
	}
	if moved != nil {
		r.span.adopt(moved, p, q.Adopt.Record == nil)
	} else {
		r.span.hideMirror(p.Identity)
	}
	if moved == nil {
		p.Audience = r.joinsAudience(p)
	}
	r.recorder.automatic()
	r.enter(p)
	r.node.rooms.Remember(p.Session, r)
	r.Begin()
	r.emitJoined(p)
	if moved == nil {
		p.log.Info("participant joined", zap.String("session", p.Session))
	}
	for _, publication := range p.Publications {
		p.attachData(publication)
	}
	for _, name := range replaced {
		r.unpublish(p, p.Publication(name), true)
	}
	kept := len(p.Publications)
	for _, description := range publications {
		r.add(p, description)
		if moved == nil && q.Adopt != nil && q.Adopt.Record != nil {
			q.Adopt.Record.RestorePublication(p.Publications[len(p.Publications)-1])
		}
	}
	r.census.Store(r.participants.census())
	welcome := r.welcome(p, q.Join.ID, q.Adopt != nil)
	if q.Adopt != nil && q.Adopt.Record == nil {
		welcome.Restored = new(bool)
	}
	p.send(welcome)
	r.audience.welcome(p)
	p.sendPoses()
	added := presence.Announced(p.Publications[kept:])
	if moved == nil {
		r.audience.joined(&p.Presence, p)
	} else {
		for _, publication := range added {
			r.participants.share(p, &signal.Published{Participant: p.Identity, Publication: publication.Description})
		}
	}
	r.span.joined(p)
	if moved == nil && q.Adopt != nil && q.Adopt.Record == nil {
		// The client publishes its publications again.
		r.after(completeAfter, completeRequest{p})
	} else {
		r.span.completed(p)
	}
	p.subscribe(r.PublishedByOthers(&p.Presence))
	r.announce(&p.Presence, added)
	if q.Adopt != nil {
		// The token of this join may grant less than the token on the former home.
		changed := r.regrant(p, p.grants, true)
		changed.send(p)
		p.sendWanted()
	}
	r.traceRequested(p, q.Join.FrameTimes)
	if q.Adopt != nil {
		p.sendTrace()
	}
	p.updateLines()
	return p, nil
}

// newPublishingLimit limits the publications of one participant, except the publications of its join.
func newPublishingLimit(config *Config) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(config.PublishRate), config.PublishBurst)
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
		Participants: r.Describe(&p.Presence),
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
	c.Receiver.TraceFrames(p.tracing.Wanted)
}
