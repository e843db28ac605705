package sfu

import (
	"crypto/rand"
	"crypto/subtle"
	"slices"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

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
		q.result <- joinResult{err: refuse(signal.CodeResume,
			"the session's peer connection has ended, and the join requests no new connection; rejoin")}
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
			p.subscribe(r.PublishedByOthers(&p.Presence))
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
	p.subscribe(r.PublishedByOthers(&p.Presence))
	p.updateLines()
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
		for _, publication := range r.PublishedByOthers(&p.Presence) {
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
		p.send(refuse(signal.CodeForbidden, "publication %q has ended: the participant may no longer publish: %s",
			ref.Publication, c.reason))
	}
	if c.receiveRevoked {
		p.send(refuse(signal.CodeForbidden, "media is no longer sent: the participant may no longer receive: %s",
			c.reason))
	}
}

// useDataChannels decides whether a new connection uses data channels to publish and to receive.
func (p *participant) useDataChannels() {
	p.byData = p.asked.publishData && p.grants.Publish
	p.takesChunks = p.asked.receiveData && p.receive
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
