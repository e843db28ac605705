package sfu

import (
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
)

// What a connection's goroutine tells its room. A connection that was replaced meanwhile is not listened to.
type (
	// offerMade brings an offer to send, and lines that it makes for new slots.
	offerMade struct {
		*connection
		offer *signal.Offer
		slots []subscriber.Line
	}
	// answerTaken says that the client's answer was applied, and which streams bring which track.
	answerTaken struct {
		*connection
		published map[publishedTrack]transport.Streams
	}
	// requestFailed answers a request that the connection could not fulfil.
	requestFailed struct {
		*connection
		id      string
		code    signal.Code
		message string
	}
	// connectionFailed says that the connection cannot go on.
	connectionFailed struct {
		*connection
		err error
	}
	// peerEvent brings a state or a candidate.
	peerEvent struct {
		*connection
		event transport.Event
	}
	// slotEvents bring what happened on slots in the data plane.
	slotEvents struct {
		*connection
		events []forward.Event
	}
	// answerOverdue comes some time after an offer.
	answerOverdue struct {
		*connection
		offer *signal.Offer
	}
	// connectOverdue comes some time after a connection began or failed.
	connectOverdue struct {
		*connection
	}
)

// present says whether the connection is its owner's present one.
func (c *connection) present() bool { return !c.owner.gone && c.owner.connection == c }

// apply implements request.
func (q offerMade) apply(r *Room) {
	if !q.present() {
		return
	}
	p := q.owner
	p.pendingOffer = q.offer
	p.subscriber.Slots.Add(q.slots)
	told := p.subscriber.Slots.Assign()
	p.send(p.offerFor(q.offer))
	p.tellAssignments(told)
	q.answerTimer.set(r, r.node.config.AnswerTimeout, answerOverdue{q.connection, q.offer})
	if !p.connected && !q.connectTimer.running() {
		q.connectTimer.set(r, r.node.config.ConnectTimeout, connectOverdue{q.connection})
	}
}

// apply implements request.
func (q answerTaken) apply(r *Room) {
	if !q.present() {
		return
	}
	p := q.owner
	p.pendingOffer = nil
	for track, streams := range q.published {
		publication := p.publication(track.publication)
		if publication == nil || publication.id != track.id {
			continue
		}
		t, _ := publication.Track(track.tile, track.quality)
		q.ingress.Bind(streams.SSRC, streams.Retransmission, t)
	}
	p.subscriber.Slots.Answered()
	p.openSlots()
	// Something may have changed while the answer was awaited.
	p.updateLines()
	p.refresh(r.now)
}

// apply implements request.
func (q requestFailed) apply(*Room) {
	if q.present() {
		q.owner.reply(q.id, refuse(q.code, "%s", q.message))
	}
}

// apply implements request.
func (q connectionFailed) apply(r *Room) {
	if q.present() && !q.over {
		q.owner.log.Error("peer connection failed", errorField(q.err))
		r.expel(q.owner, signal.CodeConnection, "the peer connection failed")
	}
}

// apply implements request.
func (q peerEvent) apply(r *Room) {
	if !q.present() {
		return
	}
	p := q.owner
	if c := q.event.Candidate; c != nil {
		p.send(&signal.Candidate{Candidate: c.Candidate, MID: c.MID, LineIndex: c.LineIndex})
		return
	}
	switch q.event.State {
	case transport.StateConnected:
		if !p.connected {
			p.connected = true
			q.connectTimer.stop()
			p.log.Info("participant connected", zap.Duration("after", time.Since(p.joined)))
		}
		if !p.arrived {
			// What takes longer later is no part of joining.
			p.arrived = true
			r.node.metrics.ParticipantConnected(time.Since(p.joined))
		}
		p.refresh(r.now)
		r.wakeBy(r.now)
	case transport.StateDisconnected:
		// The client may be elsewhere by now, where its network has given it another address, and ICE would wait there for what does not come any more. One whose websocket broke
		// has ICE begin anew when it comes back.
		if p.connected && p.outbox != nil {
			q.commands.add(restartCommand{})
		}
	case transport.StateFailed:
		if q.event.Final {
			connectionFailed{q.connection, errPanicked}.apply(r)
			return
		}
		if p.connected {
			// One that fails again has no more time for that.
			q.connectTimer.set(r, r.node.config.ConnectTimeout, connectOverdue{q.connection})
		}
		p.connected = false
		p.log.Warn("peer connection lost")
		q.commands.add(restartCommand{})
	case transport.StateClosed:
		p.connectionOver()
	}
}

// apply implements request.
func (q slotEvents) apply(*Room) {
	if !q.present() {
		return
	}
	p := q.owner
	sending, dropped := p.subscriber.TakeEvents(q.events, p.outbox != nil)
	p.tellSlots(sending)
	if len(dropped) > 0 {
		p.send(&signal.Delivery{Dropped: dropped})
	}
}

// apply implements request.
func (q answerOverdue) apply(r *Room) {
	if q.present() && q.owner.pendingOffer == q.offer && q.owner.outbox != nil {
		r.expel(q.owner, signal.CodeConnection, "the offer was not answered in time")
	}
}

// apply implements request.
func (q connectOverdue) apply(r *Room) {
	p := q.owner
	if q.present() && !p.connected && p.outbox != nil {
		r.expel(p, signal.CodeConnection, "no peer connection came about in time")
	}
}

// connectionOver takes note that the client has ended its peer connection, which ICE does not bring back. The client is told so at once, by the end of its websocket, and is waited
// for as after any other: it comes back with a new connection, or joins anew.
func (p *participant) connectionOver() {
	c, outbox := p.connection, p.outbox
	c.over, p.connected, p.pendingOffer = true, false, nil
	c.answerTimer.stop()
	c.connectTimer.stop()
	p.log.Warn("peer connection ended by the client")
	if outbox == nil {
		return
	}
	code := signal.CodeConnection
	if !p.profile.takesLeave {
		code = ""
	}
	p.detached()
	outbox.Close(code, "the peer connection was ended")
}

// expel removes a participant and tells it why.
func (r *Room) expel(p *participant, code signal.Code, reason string) {
	outbox := p.outbox
	r.remove(p, reason)
	if outbox != nil {
		outbox.Close(code, reason)
	}
}
