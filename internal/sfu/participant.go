package sfu

import (
	"crypto/rand"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/dataflow"
	"github.com/volsfu/volsfu/internal/sfu/frametimes"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Outbox queues messages for one client's websocket. An Outbox never blocks.
type Outbox interface {
	// Send queues a message. Send reports false if the queue is full because the client does not read.
	Send(signal.Message) bool
	// Close ends the websocket with a reason after the queued messages are written. Later calls do nothing.
	Close(code signal.Code, reason string)
}

// Grants are the rights of a participant.
type Grants struct {
	Publish   bool
	Subscribe bool
	// Data grants sending data messages and changing the own attributes.
	Data bool
	// Admin grants changes to other participants and to the room.
	Admin bool
}

// Profile describes how clients of one protocol take part in a room. All clients of the protocol share the Profile,
// which does not change.
type Profile struct {
	// Name is the protocol's name in the log.
	Name string
	// Resumes is set if the place of a client whose websocket broke is kept for the grace time, in which the client may
	// resume.
	Resumes bool
	// TakesLeave is set if a client sends a message before it leaves. A peer connection that ends without the message
	// has failed.
	TakesLeave bool
	// Acknowledges is set if a client acknowledges assignments. Slots of other clients carry their assignments once
	// their lines are negotiated.
	Acknowledges bool
	// Offers is set if a client makes the only offer. ICE is restarted by the client alone.
	Offers bool
	// Parity is set if a client reads parity packets.
	Parity bool
	// Traces is set if a client can be asked for the times of its frames.
	Traces bool
	// TakesData is set if a client reads data messages.
	TakesData bool
	// Converted is set if a client publishes VR2Gather packets, which the data plane converts. A publication of the
	// client is announced to the others after its first frame.
	Converted bool
	// Named returns the outlet of a named line. If Named is not nil, lines have names by which the client identifies
	// their content: no line is spare, and a line does not change its publication.
	Named func(egress.Outlet, subscriber.Name) NamedOutlet
	// Withheld returns the reason why a client cannot receive a publication, empty if it can. If Withheld is nil, a
	// client can receive all publications.
	Withheld func(*volumetric.Publication) string
	// Wants reports whether a client asks for a publication. If Wants is nil, a client asks for all publications.
	Wants func(*volumetric.Publication) bool
	// OnePerKind is set if a client can receive only one publication of each kind from each publisher.
	OnePerKind bool
}

// NamedOutlet sends the packets of a named line.
type NamedOutlet interface {
	egress.Outlet
	subscriber.NamedOutput
}

// signallingProfile is the profile of signalling v1.
var signallingProfile = Profile{
	Name: "signalling", Resumes: true, TakesLeave: true, Acknowledges: true, Parity: true, Traces: true,
	TakesData: true,
}

// wants reports whether a client asks for a publication.
func (f *Profile) wants(p *presence.Publication) bool {
	return f.Wants == nil || f.Wants(&p.Description)
}

// reads reports whether a client asks for a publication and can receive it.
func (f *Profile) reads(p *presence.Publication) bool {
	return f.wants(p) && (f.Withheld == nil || f.Withheld(&p.Description) == "")
}

// first returns the index of the first of a publisher's publications that has the kind and that a client can receive,
// -1 if there is none.
func (f *Profile) first(publications []*presence.Publication, kind volumetric.Kind) int {
	return slices.IndexFunc(publications, func(p *presence.Publication) bool {
		return p.Description.Kind == kind && f.reads(p)
	})
}

// second reports whether the publisher has an earlier publication of the same kind that a client can receive.
func (f *Profile) second(publications []*presence.Publication, p *presence.Publication) bool {
	first := f.first(publications, p.Description.Kind)
	return first >= 0 && publications[first] != p
}

// participant is a participant of a room. The participant belongs to the room's goroutine.
type participant struct {
	presence.Presence
	room *Room
	// secret is the present secret of the session for a resume. former is the previous secret. former is empty once a
	// message has shown that the client has received the present secret.
	secret, former string

	// granted are the grants of the token, permissions the permissions that an operator has set, and grants both
	// together.
	granted     Grants
	permissions signal.SetPermissions
	grants      Grants
	// bearer is the holder of the place since the join, whichever token resumes the session. token is the token of the
	// last join or resume.
	bearer admission.Bearer
	token  admission.Token
	// asked is the client's request in its join, whether its token granted the request or not. receive is set if the
	// client receives publications of others.
	asked   joinOptions
	receive bool
	// limits are the client's own limits of the bit rate that it is sent.
	limits signal.BitrateLimits
	// offer is the session description of a client that offers, nil for other clients.
	offer *description.Description
	// watched is the only participant whose publications the client receives, empty for all participants.
	watched string
	// deadline is the time in which the client repairs a frame, 0 if the server decides.
	deadline time.Duration
	// pauses is set if the client pauses tracks that are not wanted.
	pauses bool
	// byData is set if the client publishes frames over data channels.
	byData bool
	// takesChunks is set if the client receives frames over data channels.
	takesChunks bool
	// profile is the profile of the client's protocol.
	profile *Profile
	log     *zap.Logger
	// warned has the warnings that have been logged.
	warned map[string]bool
	// outbox is nil while the websocket is broken. detachments counts breaks and resumes of the websocket, so that the
	// grace timer of an earlier break has no effect.
	outbox      Outbox
	detachments int

	connection *connection
	connected  bool
	// arrived is set when the participant has been connected once.
	arrived bool
	// pendingOffer is the offer that awaits an answer, nil if there is none.
	pendingOffer *pendingOffer

	data dataflow.Flow
	// publishing limits the rate of changes of which others are notified: new publications, mutings, and requests for
	// times of frames.
	publishing *rate.Limiter
	// offers limits the changes of the participant's given-up tracks after which receivers decide at once.
	offers     *subscriber.OfferLimit
	subscriber *subscriber.Subscriber
	frameTimes frametimes.State
	joined     time.Time
	// epoch counts the homes of the session, from 0. complete is set once other nodes know all publications of the
	// session.
	epoch    uint64
	complete bool
	// saving is the state of the records for other nodes. viewpoint and arrangement are the last of the client, for the
	// records only.
	saving        saving
	viewpoint     *signal.Viewpoint
	arrangement   []signal.Placement
	limitReported bool
	gone          bool
}

// pendingOffer is an offer that was sent and awaits an answer. A repeated offer is another pendingOffer. The connection
// can make the text again, which has 20 kB.
type pendingOffer struct {
	number int
	// repeating is set from the command peer.Repeat until the connection passes the offer.
	repeating bool
}

// joinOptions are the requests of a client in its join: to receive, to receive over data channels, and to publish over
// data channels.
type joinOptions struct {
	receive, receiveData, publishData bool
	// messageChannel asks for copies of data messages over data channels.
	messageChannel bool
	// multipath is nil for a client with one network interface.
	multipath *signal.Multipath
}

// errorField returns the log field of an error.
func errorField(err error) zap.Field { return zap.Error(err) }

// send queues a message for the client. If the client does not read, its websocket is closed and the client may resume.
func (p *participant) send(m signal.Message) {
	if p.outbox == nil || p.outbox.Send(m) {
		return
	}
	p.log.Warn("client does not read its messages")
	p.outbox.Close(signal.CodeSlowReader, "the client did not read its messages in time")
	p.detached()
}

// reply answers a request with OK or with its error.
func (p *participant) reply(id string, err *signal.Error) {
	if err != nil {
		err.ID = id
		p.room.node.metrics.SignallingError(err.Code)
		p.send(err)
		return
	}
	if id != "" {
		p.send(&signal.OK{Header: signal.Header{ID: id}})
	}
}

// detached keeps the participant for the grace time after its websocket broke.
func (p *participant) detached() {
	p.outbox = nil
	p.detachments++
	p.room.span.changed(p)
	grace := p.room.node.config.ResumeGrace
	if !p.profile.Resumes {
		grace = 0
	}
	p.room.after(grace, graceOver{p, p.detachments})
}

// subscribe requests slots for publications of others. All slots are requested together, so that they need at most one
// offer.
func (p *participant) subscribe(publications []*presence.Publication) {
	publications = p.readable(presence.Audible(publications))
	if !p.receive || len(publications) == 0 {
		return
	}
	for _, publication := range publications {
		p.subscriber.Slots.Want(publication.Publication)
	}
	p.sendAssignments(p.subscriber.Slots.Assign())
	p.updateLines()
}

// unsubscribe frees the slots of a publication that ends and assigns the slots to waiting targets.
func (p *participant) unsubscribe(publication *presence.Publication) {
	slots := p.subscriber.Slots
	told, renames := slots.Drop(publication.Publication), slots.Renames()
	p.sendAssignments(append(told, slots.Assign()...))
	if slots.Renames() != renames {
		p.updateLines()
	}
}

func (p *participant) sendAssignments(told []signal.Assignment) {
	if len(told) > 0 {
		p.subscriber.Invalidate()
		if !p.profile.Acknowledges {
			p.openSlots()
			p.acknowledgeUnnamed(told)
			defer p.refresh(p.room.now)
		}
		p.subscriber.Expect()
		p.send(&signal.Assignments{Assignments: told})
	}
}

// carriesByData reports whether the participant sends a publication over a data channel.
func (p *participant) carriesByData(publication *presence.Publication) bool {
	return p.byData && peer.CarriedByData(&publication.Description)
}

// attachData connects a publication to its data channel if it uses one.
func (p *participant) attachData(publication *presence.Publication) {
	if p.carriesByData(publication) {
		p.connection.AttachData(publication.Publication)
	}
}

// trackOf identifies a track that needs a line.
func trackOf(p *presence.Publication, tile, quality int) peer.Track {
	return peer.Track{
		ID:          p.ID,
		Publication: p.Description.Name,
		Kind:        p.Description.Kind,
		Tile:        tile,
		Quality:     volumetric.Quality(quality),
	}
}

// updateLines sets the lines of the connection. updateLines requests more slots than needed, so that the next
// publication finds idle slots and needs no offer.
func (p *participant) updateLines() {
	var wanted peer.Lines
	for _, publication := range p.Publications {
		if p.carriesByData(publication) {
			continue
		}
		for tile := range publication.Description.Tiles {
			for q := range publication.Description.Qualities {
				wanted.Publish = append(wanted.Publish, trackOf(publication, tile, q))
			}
		}
	}
	if p.receive {
		config := p.room.node.config
		wanted.Slots = p.slotCount(volumetric.KindVideo, config.SpareSlots)
		wanted.AudioSlots = p.slotCount(volumetric.KindAudio, config.SpareAudioSlots)
		wanted.Renames = p.subscriber.Slots.Renames()
	}
	p.connection.Do(peer.SetLines{Lines: wanted})
}

// spareShare sets the spare slots of a large room to a quarter of the needed slots. If no slot is idle, each new
// publication costs a receiver an offer of all its lines. With the share, the number of offers to a receiver in a room
// that fills grows only with the logarithm of the room's size.
const spareShare = 4

// slotCount returns the number of slots of a kind that the connection shall have. If the limit leaves publications
// without slots, the client receives one error.
func (p *participant) slotCount(kind volumetric.Kind, spare int) int {
	slots := p.subscriber.Slots
	needed, present := slots.Needed(kind), slots.Count(kind)
	limit := p.room.node.config.MaxSlots
	if p.profile.Named != nil {
		if needed = slots.NamedCount(kind); needed > limit {
			p.warnOnce("some publications have no line because of the limit", zap.Int("needed", needed),
				zap.Int("limit", limit))
		}
		return min(needed, limit)
	}
	if needed > limit && !p.limitReported {
		p.limitReported = true
		p.log.Warn("some publications have no slot because of the limit", zap.Int("needed", needed),
			zap.Int("limit", limit))
		p.send(signal.Errorf(signal.CodeLimit,
			"%d slots are needed, the limit is %d (rooms.max_slots): some publications are not sent", needed, limit))
	}
	if needed <= present && present > 0 {
		return present
	}
	return min(needed+max(spare, needed/spareShare), limit)
}

// warnOnce logs a warning once for each text.
func (p *participant) warnOnce(text string, fields ...zap.Field) {
	if p.warned[text] {
		return
	}
	if p.warned == nil {
		p.warned = make(map[string]bool)
	}
	p.warned[text] = true
	p.log.Warn(text, append(fields, zap.String("repeated", "not logged again"))...)
}

// newParticipant returns the participant of a join, without a connection.
func newParticipant(r *Room, q *JoinRequest) *participant {
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
		data:       dataflow.NewFlow(r.node.config.dataLimits()),
		publishing: newPublishingLimit(&r.node.config),
		offers:     subscriber.NewOfferLimit(),
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
	return p
}

// newPublishingLimit limits the publications, mutings and requests for times of frames of one participant, except those
// of its join.
func newPublishingLimit(config *Config) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(config.PublishRate), config.PublishBurst)
}

// regranted has the changes for a participant whose grants have changed.
type regranted struct {
	// reason is the reason of the changes.
	reason string
	// ended are the publications that ended for lack of the grant to publish.
	ended []volumetric.PublicationRef
	// receiveRevoked is set if the grant to receive has ended, receives if the participant has the grant again.
	receiveRevoked, receives bool
}

// regrant sets the grants of a participant: those of the token of a resume, or those with changed permissions.
// Publications and slots without a grant end. The caller sends the changes to the client with send, after the reply to
// a join.
func (r *Room) regrant(p *participant, grants Grants, newConnection bool) (changed regranted) {
	p.grants = grants
	if grants.Publish {
		r.audience.name(&p.Presence)
	}
	changed.reason = "the token no longer grants it"
	if newConnection {
		// A present connection keeps its line for data channels, or has none.
		defer p.useDataChannels()
	}
	if !grants.Publish {
		for _, publication := range slices.Clone(p.Publications) {
			changed.ended = append(changed.ended, publication.Ref)
			r.unpublish(p, publication, true)
			p.log.Info("unpublished: the participant may no longer publish",
				zap.String("publication", publication.Ref.Publication))
		}
	}
	receives := p.asked.receive && grants.Subscribe
	switch {
	case p.receive && !receives:
		changed.receiveRevoked = true
		for _, publication := range r.present.PublishedByOthers(&p.Presence) {
			p.subscriber.Slots.Drop(publication.Publication)
		}
		p.receive = false
	case !p.receive && receives && (newConnection || !p.asked.receiveData || p.takesChunks):
		changed.receives = true
		p.receive = true
	}
	return changed
}

// send sends the client the changes and their reasons.
func (c *regranted) send(p *participant) {
	for _, ref := range c.ended {
		p.send(&signal.Unpublished{PublicationRef: ref})
		p.send(signal.Errorf(signal.CodeForbidden,
			"publication %q has ended: the participant may no longer publish: %s",
			ref.Publication, c.reason))
	}
	if c.receiveRevoked {
		p.send(signal.Errorf(signal.CodeForbidden, "media is no longer sent: the participant may no longer receive: %s",
			c.reason))
	}
}

// useDataChannels decides whether a new connection uses data channels to publish and to receive.
func (p *participant) useDataChannels() {
	p.byData = p.asked.publishData && p.grants.Publish
	p.takesChunks = p.asked.receiveData && p.receive
}

// limitBitrate bounds the rate of a receiver by its own limits and those of the room.
func (p *participant) limitBitrate() {
	node := p.room.node
	p.subscriber.SetLimits(p.room.settings.Within(p.limits), node.config.ClaimedMin, node.engine.StartRate())
}
