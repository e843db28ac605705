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
	"github.com/volsfu/volsfu/internal/sfu/data"
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
		deliveries:    data.NewDeliveries(),
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
	r.participants.askForTimes()
	r.audience.left(&p.Presence, p, reason)
	r.span.showMirror(p.Identity)
	p.log.Info("participant left", zap.String("reason", reason))
}
