package sfu

import (
	"crypto/rand"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/dataflow"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/webhook"
)

// request is a request to a room's goroutine. The method apply never blocks.
type request interface {
	apply(r *Room)
}

// Room is one conference. The goroutine owns all fields, except those that are documented as safe.
type Room struct {
	node     *Node
	name     string
	log      *zap.Logger
	requests chan request
	// done is closed when the room has ended. Later requests are discarded.
	done chan struct{}
	roster
	// span connects the room to the same room on other nodes, nil without a cluster.
	span *span
	// drained is the time at which the server will stop, zero if there is no drain.
	drained time.Time
	// ending is set when the server stops. Joins in progress are then refused.
	ending bool
	// settings are those of the API, nil if there are none.
	settings *admission.RoomSettings
	roomEvents

	// now is the time of the present request.
	now time.Time
	// alarm wakes the room at wakeAt, zero if nothing is due. nextTick is the time of the next check of the qualities.
	alarm            *time.Timer
	wakeAt, nextTick time.Time
	scheduler        subscriber.Scheduler
	demands          demands

	announcements *admission.Announcements
	recorder      roomRecorder
	// metadata describes the room to its participants. The map does not change.
	metadata map[string]string
	// metadataAt is the time of the last change of the metadata, in microseconds since 1970, 0 for none.
	metadataAt int64
	audience   audience
	// deliveries limits the data messages that all participants receive.
	deliveries *rate.Limiter
	// census has the numbers of participants and publications, for other goroutines.
	census atomic.Pointer[census]
}

// census has the numbers of participants and publications of a room.
type census struct{ participants, publications int }

// requestBacklog is the number of requests that may wait for the room: those of the connections and websockets of some
// tens of participants at once. If the queue is full, the sender waits, which delays only the reading of its own
// client.
const requestBacklog = 256

func newRoom(node *Node, name string) *Room {
	allocator, err := allocate.New(node.config.Allocation)
	if err != nil {
		panic("the configuration must be validated before use: " + err.Error())
	}
	alarm := time.NewTimer(0)
	alarm.Stop()
	r := &Room{
		node:     node,
		name:     name,
		log:      node.log.With(zap.String("room", name)),
		requests: make(chan request, requestBacklog),
		done:     make(chan struct{}),
		roster:   roster{participants: make(members), descriptionBytes: node.config.DescriptionBytes},
		now:      time.Now(),
		alarm:    alarm,
		scheduler: subscriber.Scheduler{
			Allocator: allocator, Metrics: node.metrics, Clock: time.Now, Interval: node.config.AllocationInterval,
		},

		announcements: admission.NewAnnouncements(node.config.DescriptionBytes),
		deliveries:    dataflow.NewDeliveries(),
	}
	r.recorder.room, r.audience.room, r.demands.room = r, r, r
	r.roomEvents.receiver, r.roomEvents.room = node.config.Events, webhook.Room{Name: name, ID: rand.Text()}
	if node.config.Cluster != nil {
		r.span = newSpan(r, node.config.Cluster)
	}
	return r
}

// run is the room's goroutine. run ends when the node removes the room. If it panics, all participants end.
func (r *Room) run(end <-chan struct{}) {
	finished := false
	defer func() {
		if finished {
			r.node.running.Done()
		}
	}()
	defer r.node.config.Guard.Recover(placeRoom, func() {
		defer r.node.running.Done()
		r.abandon()
	})
	defer close(r.done)
	defer r.alarm.Stop()
	for {
		select {
		case q := <-r.requests:
			r.do(time.Now(), q)
		case <-r.alarm.C:
			r.do(time.Now(), wake{})
		case <-r.span.ready():
			r.do(time.Now(), remoteEvents{})
		case <-end:
			r.span.end()
			finished = true
			return
		}
	}
}

// abandon ends all participants after the room's goroutine has panicked and ended. The caller owns the room's state.
func (r *Room) abandon() {
	r.node.rooms.Drop(r)
	for _, p := range r.participants.others(nil) {
		r.abandonParticipant(p)
	}
	r.node.config.Guard.Try(placeRoom, func() { r.recorder.stop("internal error of the server") })
	r.node.config.Guard.Try(placeRoom, r.span.end)
	r.End()
}

// abandonParticipant removes a participant. If the state of the room prevents a regular removal, abandonParticipant
// ends the participant's tracks, websocket, connection and session directly.
func (r *Room) abandonParticipant(p *participant) {
	const reason = "internal error of the server"
	outbox, publications := p.outbox, slices.Clone(p.Publications)
	if r.node.config.Guard.Try(placeRoom, func() { r.expel(p, signal.CodeInternal, reason) }) {
		return
	}
	r.exit(p)
	r.span.left(p, publications, reason)
	p.connection.dismiss()
	for _, publication := range publications {
		publication.Close()
	}
	if outbox != nil {
		outbox.Close(signal.CodeInternal, reason)
	}
	if room, _ := r.node.rooms.RoomOf(p.Session); room == r {
		r.node.forget(p)
	}
}

// do applies a request at the given time and sends publishers the changes of the demand.
func (r *Room) do(now time.Time, q request) {
	r.now = now
	q.apply(r)
	r.demands.settle()
	r.span.save()
}

// post sends a request to the room's goroutine and waits while the queue is full. The room's goroutine must not call
// it.
func (r *Room) post(q request) {
	select {
	case r.requests <- q:
	case <-r.done:
	}
}

// after posts a request later.
func (r *Room) after(d time.Duration, q request) *time.Timer {
	return time.AfterFunc(d, func() { r.post(q) })
}

// timer posts one request at a time. The timer belongs to the room's goroutine.
type timer struct{ pending *time.Timer }

// set posts a request later and replaces the previous request.
func (t *timer) set(r *Room, d time.Duration, q request) {
	t.stop()
	t.pending = r.after(d, q)
}

// running reports whether a request has been set and not stopped since.
func (t *timer) running() bool { return t.pending != nil }

func (t *timer) stop() {
	if t.pending != nil {
		t.pending.Stop()
		t.pending = nil
	}
}

// remove ends a participant with its publications, connection and place in the room. The others receive the reason.
func (r *Room) remove(p *participant, reason string) {
	if r.participants[p.Identity] != p {
		return
	}
	publications := presence.Announced(p.Publications)
	for _, publication := range slices.Clone(p.Publications) {
		r.unpublish(p, publication, false)
	}
	p.subscriber.Slots.Release()
	r.exit(p)
	r.census.Store(r.participants.census())
	p.gone = true
	p.connection.dismiss()
	left := p.event(webhook.ParticipantLeft)
	left.Reason = reason
	r.emit(left)
	r.span.left(p, publications, reason)
	// The room may end with the place of the participant.
	r.node.forget(p)
	p.trace(false)
	r.participants.askForTimes(r.span)
	r.audience.left(&p.Presence, p, reason)
	r.span.showMirror(p.Identity)
	p.log.Info("participant left", zap.String("reason", reason))
}

// roomEvents emits the events of one room.
type roomEvents struct {
	// receiver is nil if no program receives events.
	receiver Events
	// room has the name of the room and the id of its present life, from its start to its end.
	room webhook.Room
	// begun is set from the event of the room's start to that of its end, emitted counts the room's events. Both are
	// safe for concurrent use.
	begun   atomic.Bool
	emitted atomic.Uint64
}

// Name returns the name of the room.
func (r *roomEvents) Name() string { return r.room.Name }

// emit passes an event of the room on. The events RoomStarted and RoomEnded are emitted by Begin and End.
func (r *roomEvents) emit(e webhook.Event) {
	if r.receiver == nil {
		return
	}
	e.Room, e.Sequence, e.At = r.room, r.emitted.Add(1), time.Now()
	r.receiver.RoomEvent(e)
}

// Begin emits the start of the room once. A room that a join opens starts when the join is accepted.
func (r *roomEvents) Begin() {
	if r.begun.CompareAndSwap(false, true) {
		r.emit(webhook.Event{Kind: webhook.RoomStarted})
	}
}

// End emits the end of the room once, if the room has started. No event of the room may follow.
func (r *roomEvents) End() {
	if r.begun.CompareAndSwap(true, false) {
		r.emit(webhook.Event{Kind: webhook.RoomEnded})
	}
}

// event returns an event of the participant.
func (p *participant) event(kind webhook.Kind) webhook.Event {
	return webhook.Event{Kind: kind, Participant: &webhook.Participant{Identity: p.Identity, TokenID: p.token.ID}}
}

// movedReason is the reason of a departure by a move. Each node has a room of its own, with its own events.
const movedReason = "moved to another server"

// emitJoined emits the arrival of a participant, with the publications that it brings from another node.
func (r *roomEvents) emitJoined(p *participant) {
	r.emit(p.event(webhook.ParticipantJoined))
	for _, publication := range p.Publications {
		r.emitPublication(p, publication, webhook.Published)
	}
}

// emitMoved emits the end of a participant's publications on this node and its departure to another node.
func (r *roomEvents) emitMoved(p *participant) {
	for _, publication := range p.Publications {
		r.emitPublication(p, publication, webhook.Unpublished)
	}
	left := p.event(webhook.ParticipantLeft)
	left.Reason = movedReason
	r.emit(left)
}

// emitPublication emits an event of a publication, unless others do not know the publication.
func (r *roomEvents) emitPublication(owner *participant, p *presence.Publication, kind webhook.Kind) {
	if p.Silent {
		return
	}
	e, d := owner.event(kind), &p.Description
	e.Publication = &webhook.Publication{
		Name: d.Name, Kind: string(d.Kind), Codec: d.Codec.MIMEType, Tiles: len(d.Tiles), Qualities: len(d.Qualities),
	}
	r.emit(e)
}

// wake is the request of the room's own alarm.
type wake struct{}

// wakeBy wakes the room at the given time at the latest. A zero time has no effect.
func (r *Room) wakeBy(at time.Time) {
	if at.IsZero() || !r.wakeAt.IsZero() && !at.Before(r.wakeAt) {
		return
	}
	r.wakeAt = at
	r.alarm.Reset(max(0, at.Sub(r.now)))
}

// apply implements request.
func (wake) apply(r *Room) {
	r.wakeAt = time.Time{}
	receiving := false
	r.audience.send()
	r.wakeBy(r.scheduler.SettleOffers(r.now))
	for publication := range r.present.Publications {
		r.attend(publication)
	}
	for _, p := range r.participants {
		if !p.receives() {
			continue
		}
		receiving = true
		due, deferred := p.subscriber.Deferred(r.node.config.AllocationInterval)
		switch {
		case !deferred:
		case r.now.Before(due):
			r.wakeBy(due)
		default:
			p.decide()
		}
	}
	if !receiving {
		r.measureUnwatched()
		return
	}
	if !r.now.Before(r.nextTick) {
		r.nextTick = r.now
		if r.tick() {
			r.nextTick = r.now.Add(r.node.config.AllocationInterval)
		}
	}
	r.wakeBy(r.nextTick)
}

// unwatchedInterval is the interval of rate measurements while there is no receiver, so that rates are known when a
// receiver joins.
const unwatchedInterval = 200 * time.Millisecond

// measureUnwatched measures tracks while there is no receiver: before the first receiver joins, and until publishers
// have paused. Then no parity is needed.
func (r *Room) measureUnwatched() {
	coming := false
	for publication := range r.present.Publications {
		if publication.Measure(r.now) {
			r.span.measured(publication)
		}
		publication.Demand.Parity.Reset()
		publication.Demand.CheckParity(r.now)
		coming = coming || !publication.Demand.AllPaused()
	}
	if coming {
		r.wakeBy(r.now.Add(unwatchedInterval))
	}
}

// attend performs the steps that are due for one publication.
func (r *Room) attend(p *presence.Publication) {
	if p.Place.Pending() {
		r.forwardPose(p)
	}
	if p.Silent {
		r.announceBegun(r.participants[p.Ref.Participant], p)
	}
	r.demands.update(p.Demand)
}

// tick checks whether other qualities are needed. tick reports false if time did not suffice for all receivers. The
// caller then calls it again after other requests.
func (r *Room) tick() (complete bool) {
	r.scheduler.Tick(r.now)
	for publication := range r.present.Publications {
		if publication.Measure(r.now) {
			r.span.measured(publication)
			r.scheduler.Changes.Rates++
		}
		publication.Demand.Parity.Reset()
	}
	r.scheduler.Begin()
	complete = true
	for _, p := range r.participants {
		if !p.receives() {
			continue
		}
		p.subscriber.NeedParity()
		p.subscriber.Sample(r.now)
		if complete = complete && r.scheduler.InTime(); !complete {
			continue
		}
		p.decide()
		p.sendSlotQualities(p.subscriber.Reasons(r.now))
		if m := p.subscriber.Bandwidth(r.now); m != nil {
			p.send(m)
		}
	}
	for publication := range r.present.Publications {
		publication.Demand.CheckParity(r.now)
	}
	return complete
}

// receives reports whether media may be sent to the participant.
func (p *participant) receives() bool { return p.receive && p.connected }

// refresh decides the qualities after a request of the client: a choice, or slots that became ready. requested is the
// time of the request.
func (p *participant) refresh(requested time.Time) {
	if !p.connected {
		return
	}
	until := p.subscriber.Request(requested, p.room.now, p.room.node.config.AllocationInterval)
	if !until.IsZero() {
		p.room.wakeBy(until)
		return
	}
	p.decide()
}

// decide decides the qualities of the slots if there are relevant changes, and notifies the client.
func (p *participant) decide() {
	p.sendSlotQualities(p.subscriber.Decide(p.room.now, &p.room.scheduler))
}

// sendSlotQualities sends the client the qualities of slots.
func (p *participant) sendSlotQualities(sending []signal.SlotQuality) {
	if len(sending) > 0 {
		p.send(&signal.Sending{Slots: sending})
	}
}
