package sfu

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
)

// connection is the room's side of a participant's peer connection. The connection belongs to the room's goroutine,
// except for the methods of peer.Owner.
type connection struct {
	*peer.Connection
	room  *Room
	owner *participant

	answerTimer, connectTimer timer
	// over is set when the client has ended the connection.
	over bool
}

// newConnection returns a new peer connection for a participant.
func newConnection(room *Room, owner *participant) (*connection, error) {
	c := &connection{room: room, owner: owner}
	node := room.node
	made, err := peer.New(node.endpoint, node.engine, peer.Config{
		Deadline: owner.deadline, Parity: owner.profile.Parity, PublishesByData: owner.byData,
		TakesChunks: owner.takesChunks, Messages: owner.asked.messageChannel, Multipath: owner.asked.multipath,
		Offer: owner.offer, FrameBytes: node.config.FrameBytes,
		Guard: node.config.Guard, Running: &node.running, Log: owner.log,
	}, c)
	if err != nil {
		return nil, err
	}
	c.Connection = made
	return c, nil
}

// present reports whether the connection is its owner's present connection. The room ignores a replaced connection.
func (c *connection) present() bool { return !c.owner.gone && c.owner.connection == c }

// dismiss ends the connection. dismiss stops the timers, which would keep the connection in memory until they fire.
func (c *connection) dismiss() {
	c.answerTimer.stop()
	c.connectTimer.stop()
	c.Do(peer.Close{})
}

// Done implements peer.Owner.
func (c *connection) Done() <-chan struct{} { return c.room.done }

// OfferMade implements peer.Owner.
func (c *connection) OfferMade(offer *signal.Offer, lines []subscriber.Line) {
	c.room.post(offerMade{c, offer, lines})
}

// OfferRepeated implements peer.Owner.
func (c *connection) OfferRepeated(offer *signal.Offer) { c.room.post(offerRepeated{c, offer}) }

// AnswerTaken implements peer.Owner.
func (c *connection) AnswerTaken(published map[peer.Track]transport.Streams) {
	c.room.post(answerTaken{c, published})
}

// ChannelsMade implements peer.Owner.
func (c *connection) ChannelsMade(lines []subscriber.Line) { c.room.post(channelsMade{c, lines}) }

// RequestFailed implements peer.Owner.
func (c *connection) RequestFailed(id string, code signal.Code, message string) {
	c.room.post(requestFailed{c, id, code, message})
}

// ConnectionFailed implements peer.Owner.
func (c *connection) ConnectionFailed(err error) { c.room.post(connectionFailed{c, err}) }

// PeerEvent implements peer.Owner.
func (c *connection) PeerEvent(event transport.Event) { c.room.post(peerEvent{c, event}) }

// SlotEvents implements peer.Owner.
func (c *connection) SlotEvents(events []egress.Event) { c.room.post(slotEvents{c, events}) }

// FrameTimes implements peer.Owner.
func (c *connection) FrameTimes(frames []egress.FrameTimes) { c.room.post(frameTimes{c, frames}) }

// The requests of a connection to its room. Each has the arguments of the method of peer.Owner.
type (
	offerMade struct {
		*connection
		offer *signal.Offer
		lines []subscriber.Line
	}
	offerRepeated struct {
		*connection
		offer *signal.Offer
	}
	answerTaken struct {
		*connection
		published map[peer.Track]transport.Streams
	}
	channelsMade struct {
		*connection
		lines []subscriber.Line
	}
	requestFailed struct {
		*connection
		id      string
		code    signal.Code
		message string
	}
	connectionFailed struct {
		*connection
		err error
	}
	peerEvent struct {
		*connection
		event transport.Event
	}
	slotEvents struct {
		*connection
		events []egress.Event
	}
	// answerOverdue follows an offer after the answer timeout.
	answerOverdue struct {
		*connection
		offer *pendingOffer
	}
	// connectOverdue follows the start or the failure of a connection after the connect timeout.
	connectOverdue struct {
		*connection
	}
)

// apply implements request.
func (q offerMade) apply(r *Room) {
	if !q.present() {
		return
	}
	p := q.owner
	p.pendingOffer = &pendingOffer{number: q.offer.Offer}
	p.subscriber.Slots.Add(q.lines)
	told := p.subscriber.Slots.Assign()
	p.send(p.offerFor(q.offer))
	p.sendAssignments(told)
	q.answerTimer.set(r, r.node.config.AnswerTimeout, answerOverdue{q.connection, p.pendingOffer})
	if !p.connected && !q.connectTimer.running() {
		q.connectTimer.set(r, r.node.config.ConnectTimeout, connectOverdue{q.connection})
	}
}

// apply implements request. Assignments and qualities follow the offer, which has the lines that they name.
func (q offerRepeated) apply(*Room) {
	if !q.present() {
		return
	}
	p := q.owner
	if q.offer != nil {
		if pending := p.pendingOffer; pending != nil && pending.number == q.offer.Offer {
			pending.repeating = false
		}
		p.send(p.offerFor(q.offer))
	}
	p.repeatSlots()
}

// apply implements request.
func (q answerTaken) apply(r *Room) {
	if !q.present() {
		return
	}
	p := q.owner
	p.pendingOffer = nil
	q.answerTimer.stop()
	for track, streams := range q.published {
		publication := p.Publication(track.Publication)
		if publication == nil || publication.ID != track.ID {
			continue
		}
		t, _ := publication.Track(track.Tile, track.Quality)
		q.Ingress.Bind(streams.SSRC, streams.Retransmission, t)
	}
	p.subscriber.Slots.Answered()
	p.openSlots()
	// The publications may have changed during the wait for the answer.
	p.updateLines()
	p.refresh(r.now)
}

// apply implements request.
func (q channelsMade) apply(r *Room) {
	if !q.present() {
		return
	}
	p := q.owner
	p.subscriber.Slots.Add(q.lines)
	p.openSlots()
	p.sendAssignments(p.subscriber.Slots.Assign())
	p.refresh(r.now)
}

// apply implements request.
func (q requestFailed) apply(*Room) {
	if q.present() {
		q.owner.reply(q.id, signal.Errorf(q.code, "%s", q.message))
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
			// Later connections are not part of the join.
			p.arrived = true
			r.node.metrics.ParticipantConnected(time.Since(p.joined))
		}
		p.refresh(r.now)
		r.wakeBy(r.now)
	case transport.StateDisconnected:
		// The client may have a new address, and ICE would wait for packets from the old address. If the client's
		// websocket broke, ICE is restarted when the client resumes.
		if p.connected && p.outbox != nil && !p.profile.Offers {
			q.Do(peer.Restart{})
		}
	case transport.StateFailed:
		if q.event.Final {
			connectionFailed{q.connection, peer.ErrPanicked}.apply(r)
			return
		}
		if p.profile.Offers {
			r.expel(p, signal.CodeConnection, "the client no longer consents to receive packets")
			return
		}
		if p.connected {
			// A connection that fails again gets no more time.
			q.connectTimer.set(r, r.node.config.ConnectTimeout, connectOverdue{q.connection})
		}
		p.connected = false
		p.log.Warn("peer connection lost")
		q.Do(peer.Restart{})
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
	p.sendSlotQualities(sending)
	if len(dropped) > 0 {
		p.send(&signal.Delivery{Dropped: dropped})
	}
}

// apply implements request.
func (q answerOverdue) apply(r *Room) {
	if q.present() && q.owner.pendingOffer == q.offer && q.owner.outbox != nil {
		r.expel(q.owner, signal.CodeConnection, fmt.Sprintf(
			"the offer was not answered within %v", r.node.config.AnswerTimeout))
	}
}

// apply implements request.
func (q connectOverdue) apply(r *Room) {
	p := q.owner
	if q.present() && !p.connected && p.outbox != nil {
		r.expel(p, signal.CodeConnection, fmt.Sprintf(
			"the peer connection was not established within %v (rooms.connect_timeout)", r.node.config.ConnectTimeout))
	}
}

// connectionOver handles a peer connection that the client has ended, which ICE cannot restore. The client's websocket
// is closed at once, and the client's place is kept for the grace time. The client resumes with a new connection or
// joins again.
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
	if !p.profile.TakesLeave {
		code = ""
	}
	p.detached()
	outbox.Close(code, "the client ended the peer connection")
}

// expel removes a participant and sends the reason to the client.
func (r *Room) expel(p *participant, code signal.Code, reason string) {
	outbox := p.outbox
	r.remove(p, reason)
	if outbox != nil {
		outbox.Close(code, reason)
	}
}

// NamedOffer is an offer to a client whose media lines have names.
type NamedOffer struct {
	*signal.Offer
	// Names has the names of the lines with media for the client, by mid.
	Names map[string]subscriber.Name
}

// offerFor returns the message with an offer.
func (p *participant) offerFor(offer *signal.Offer) signal.Message {
	if p.profile.Named == nil {
		return offer
	}
	o := &NamedOffer{Offer: offer, Names: make(map[string]subscriber.Name)}
	p.subscriber.Slots.Offer()
	for _, m := range offer.Media {
		if s := p.subscriber.Slots.ByMID(m.MID); s != nil {
			o.Names[m.MID] = s.Name()
		}
	}
	return o
}

// openSlots creates the outputs of slots whose lines have been negotiated.
func (p *participant) openSlots() {
	for _, s := range p.subscriber.Slots.All() {
		if s.Output != nil || s.Outlet.SSRC() == 0 {
			continue
		}
		outlet := s.Outlet
		if p.profile.Named != nil {
			named := p.profile.Named(s.Outlet, s.Name())
			s.SetNamedOutput(named)
			outlet = named
		}
		s.Output = p.connection.Receiver.AddSlot(outlet, s.Kind)
	}
}

// RestartICE is the request of a client that offers to restart ICE, with the client's new credentials. The reply is an
// Answer with the id of the request.
type RestartICE struct {
	// Candidate makes RestartICE a message, and has its head. Its other fields are empty.
	signal.Candidate
	Ufrag, Password string
}

// Answer is the server's answer to a client that offers.
type Answer struct{ signal.Answer }

// OfferAnswered implements peer.Owner.
func (c *connection) OfferAnswered(answered *peer.Answered) { c.room.post(offerAnswered{c, answered}) }

// offerAnswered has the argument of OfferAnswered.
type offerAnswered struct {
	*connection
	answered *peer.Answered
}

// apply implements request.
func (q offerAnswered) apply(r *Room) {
	if !q.present() {
		return
	}
	p, a := q.owner, q.answered
	for _, publication := range p.Publications {
		for quality, t := range publication.Tracks {
			track := trackOf(publication, 0, quality)
			if streams, ok := a.Streams[track]; ok {
				q.Ingress.Bind(streams.SSRC, streams.Retransmission, t)
			} else if name, ok := a.Names[track]; ok {
				q.Ingress.BindByName(a.Extensions, name, t)
			}
		}
	}
	p.subscriber.Slots.Add(a.Lines)
	told := p.subscriber.Slots.Assign()
	p.send(&Answer{signal.Answer{Header: signal.Header{ID: a.ID}, SDP: a.SDP}})
	p.openSlots()
	p.sendAssignments(told)
	if !p.connected && !q.connectTimer.running() {
		q.connectTimer.set(r, r.node.config.ConnectTimeout, connectOverdue{q.connection})
	}
	p.refresh(r.now)
}

// acknowledgeUnnamed records the assignments of lines without names as known to a client that acknowledges none.
func (p *participant) acknowledgeUnnamed(told []signal.Assignment) {
	if p.profile.Named != nil {
		return
	}
	for _, a := range told {
		p.subscriber.Slots.Acknowledge(signal.SlotGeneration{MID: a.MID, Generation: a.Generation})
	}
}
