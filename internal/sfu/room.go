package sfu

import (
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
)

// request is something that a room's goroutine does. Requests never block.
type request interface {
	apply(r *Room)
}

// Room is one conference. Its goroutine owns everything but what is said to be safe.
type Room struct {
	node     *Node
	name     string
	log      *zap.Logger
	requests chan request
	// done is closed when the room has ended; requests after that are lost on purpose.
	done         chan struct{}
	participants members
	// drained is when the server will stop, zero while it will not.
	drained time.Time
	// ending says that the server stops: joins that were on their way are refused.
	ending bool

	// now is the time of the request at hand.
	now time.Time
	// alarm wakes the room at wakeAt, zero if nothing is due. nextTick is when the room looks again whether the
	// qualities are still right.
	alarm            *time.Timer
	wakeAt, nextTick time.Time
	scheduler        subscriber.Scheduler
	unsettled        demand.Queue

	announcements *admission.Announcements
	// census is how many participants and publications there are, for other goroutines.
	census atomic.Pointer[census]
}

// census is how many participants and publications a room has.
type census struct{ participants, publications int }

// requestBacklog is how many requests may wait for the room: the connections and websockets of some tens of
// participants at once. Who finds it full waits, which slows that client's own reading only.
const requestBacklog = 256

// groups numbers what shares frame numbers and timestamps, for the whole process.
var groups atomic.Uint64

func nextGroup() uint64 { return groups.Add(1) }

func newRoom(node *Node, name string) *Room {
	allocator, err := allocate.New(node.config.Allocation)
	if err != nil {
		panic("a configuration is to be validated before it is used: " + err.Error())
	}
	alarm := time.NewTimer(0)
	alarm.Stop()
	return &Room{
		node:         node,
		name:         name,
		log:          node.log.With(zap.String("room", name)),
		requests:     make(chan request, requestBacklog),
		done:         make(chan struct{}),
		participants: make(members),
		now:          time.Now(),
		alarm:        alarm,
		scheduler: subscriber.Scheduler{
			Allocator: allocator, Metrics: node.metrics, Clock: time.Now, Interval: node.config.AllocationInterval,
		},

		announcements: admission.NewAnnouncements(node.config.DescriptionBytes),
	}
}

// run is the room's goroutine. It ends when the last participant has left, or with all participants if it panics.
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
		case <-end:
			finished = true
			return
		}
	}
}

// abandon ends all participants after a panic in the room's goroutine, which has ended. The caller has the room's
// state.
func (r *Room) abandon() {
	r.node.drop(r)
	for _, p := range r.participants.others(nil) {
		r.abandonParticipant(p)
	}
}

// abandonParticipant removes a participant like any other. If the state of the room does not allow that, it ends what
// the participant has by itself: tracks, websocket, connection and session.
func (r *Room) abandonParticipant(p *participant) {
	const reason = "internal error of the server"
	outbox, publications := p.outbox, slices.Clone(p.publications)
	if r.node.config.Guard.Try(placeRoom, func() { r.expel(p, signal.CodeInternal, reason) }) {
		return
	}
	delete(r.participants, p.identity)
	p.connection.dismiss()
	for _, publication := range publications {
		publication.close()
	}
	if outbox != nil {
		outbox.Close(signal.CodeInternal, reason)
	}
	if r.node.roomOf(p.session) == r {
		r.node.forget(p)
	}
}

// do takes a request at the time given, and tells publishers what follows for them.
func (r *Room) do(now time.Time, q request) {
	r.now = now
	q.apply(r)
	r.settle()
}

// post hands a request to the room's goroutine. It must not be called by that goroutine.
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

// timer posts one request at a time. It belongs to the room's goroutine.
type timer struct{ pending *time.Timer }

// set posts a request later, in place of the one before.
func (t *timer) set(r *Room, d time.Duration, q request) {
	t.stop()
	t.pending = r.after(d, q)
}

// running tells that a request has been set and not stopped since.
func (t *timer) running() bool { return t.pending != nil }

func (t *timer) stop() {
	if t.pending != nil {
		t.pending.Stop()
		t.pending = nil
	}
}

// remove ends a participant: publications, connection, place in the room. The others hear the reason.
func (r *Room) remove(p *participant, reason string) {
	if r.participants[p.identity] != p {
		return
	}
	for _, publication := range slices.Clone(p.publications) {
		r.unpublish(p, publication, false)
	}
	p.subscriber.Slots.Release()
	delete(r.participants, p.identity)
	r.census.Store(r.participants.census())
	p.gone = true
	p.connection.dismiss()
	r.node.forget(p)
	p.trace(false)
	r.participants.askForTimes()
	r.participants.share(p, &signal.ParticipantLeft{Identity: p.identity, Reason: reason})
	p.log.Info("participant left", zap.String("reason", reason))
}
