package sfu

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
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
	// alarm wakes the room at wakeAt, zero if nothing is due. nextTick is when the room looks again whether the qualities
	// are still right.
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

// requestBacklog is how many requests may wait for the room: the connections and websockets of some tens of participants at once.
// Who finds it full waits, which slows that client's own reading only.
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

// checked is a description that may be published, as far as that can be said without the room.
type checked struct {
	volumetric.Publication
	// encoded is how many bytes of JSON the description has.
	encoded int
}

// check refuses publications that somebody may not add to those that it has, for what needs no room to be known. It is
// safe for concurrent use.
func (c *Config) check(
	grants Grants, present []*publication, added []volumetric.Publication,
) ([]checked, *signal.Error) {
	list := make([]checked, 0, len(added))
	own := describedBytes(present)
	for i, description := range added {
		exists := slices.ContainsFunc(present, func(p *publication) bool { return p.Description.Name == description.Name }) ||
			slices.ContainsFunc(added[:i], func(p volumetric.Publication) bool { return p.Name == description.Name })
		switch {
		case !grants.Publish:
			return nil, refuse(signal.CodeForbidden, "the token does not grant publishing")
		case exists:
			return nil, refuse(signal.CodeExists, "publication %q exists already", description.Name)
		case len(present)+i >= c.PublicationsPerParticipant:
			return nil, refuse(signal.CodeLimit, "%d publications are the limit", c.PublicationsPerParticipant)
		}
		if err := description.Validate(); err != nil {
			return nil, refuse(signal.CodeInvalid, "%v", err)
		}
		if n := description.TrackCount(); n > c.TracksPerPublication {
			return nil, refuse(signal.CodeLimit, "publication %q has %d tracks, the limit is %d", description.Name, n,
				c.TracksPerPublication)
		}
		text, err := json.Marshal(&description)
		if err != nil {
			return nil, refuse(signal.CodeInvalid, "%v", err)
		}
		if own += len(text); own > c.DescriptionBytes/descriptionShare {
			return nil, refuse(signal.CodeLimit,
				"the descriptions of this participant's publications would have %d bytes, the limit is %d",
				own, c.DescriptionBytes/descriptionShare)
		}
		list = append(list, checked{description, len(text)})
	}
	return list, nil
}

// checkRoom refuses publications of which newcomers could not be told any more. Somebody who joins anew takes the place
// of what was there under the name.
func (r *Room) checkRoom(p *participant, added []checked) *signal.Error {
	all := describedBytes(p.publications) + encodedBytes(added)
	for _, other := range r.participants {
		if other.identity != p.identity {
			all += describedBytes(other.publications)
		}
	}
	if limit := r.node.config.DescriptionBytes; all > limit && len(added) > 0 {
		return refuse(signal.CodeLimit, "the descriptions of publications would have %d bytes in this room, the limit is %d",
			all, limit)
	}
	return nil
}

// publish checks a publication and adds it. Nobody hears of it before announce.
func (r *Room) publish(p *participant, description volumetric.Publication) *signal.Error {
	added, refused := r.node.config.check(p.grants, p.publications, []volumetric.Publication{description})
	if refused == nil {
		refused = r.checkRoom(p, added)
	}
	if refused == nil {
		refused = r.announces(p.bearer, encodedBytes(added))
	}
	if refused != nil {
		return refused
	}
	r.add(p, added[0])
	return nil
}

// add adds a publication that was checked.
func (r *Room) add(p *participant, description checked) {
	if description.VR2Gather {
		r.participants.giveNumber(p)
	}
	converted := p.profile.Converted
	publication := newPublication(r.node.engine, p.identity, description.Publication, converted, nextGroup)
	publication.Number, publication.silent, publication.encoded = p.number, converted, description.encoded
	if p.pauses {
		publication.Demand.Suppress(r.node.config.Suppression, &r.unsettled, r.now)
	}
	p.publications = append(p.publications, publication)
	p.attachData(publication)
	r.census.Store(r.participants.census())
	r.wakeBy(r.now.Add(unwatchedInterval))
	p.log.Info("published", zap.String("publication", description.Name), zap.String("codec", description.Codec.MIMEType),
		zap.Int("tiles", len(description.Tiles)), zap.Int("qualities", len(description.Qualities)))
}

// describedBytes is how many bytes of JSON the descriptions of publications have, and encodedBytes of those to be
// added.
func describedBytes(publications []*publication) (sum int) {
	for _, p := range publications {
		sum += p.encoded
	}
	return sum
}

func encodedBytes(added []checked) (sum int) {
	for _, c := range added {
		sum += c.encoded
	}
	return sum
}

// announce gives the others slots for publications, after they were told of them.
func (r *Room) announce(p *participant, publications []*publication) {
	for _, other := range r.participants.others(p) {
		other.subscribe(publications)
	}
}

// unpublish ends a publication; announce says whether the others hear of it, which they need not where its owner leaves.
func (r *Room) unpublish(p *participant, publication *publication, announce bool) {
	successors := r.participants.successors(p, publication)
	p.publications = slices.DeleteFunc(p.publications, isPublication(publication))
	if p.carriesByData(publication) {
		p.connection.DetachData(publication.Publication)
	}
	for _, track := range publication.Tracks {
		p.connection.Ingress.Unbind(track)
	}
	publication.close()
	r.endDemand(publication.Demand)
	r.census.Store(r.participants.census())
	for _, other := range r.participants.others(p) {
		other.unsubscribe(publication)
		if announce {
			other.send(&signal.Unpublished{PublicationRef: publication.Ref})
		}
	}
	if announce {
		p.updateLines()
		p.succeed(successors, publication.Description.Kind)
	}
}

// announces takes the bytes that the others are told from the budget of a bearer, unless the budget has less or there are
// no others.
func (r *Room) announces(b admission.Bearer, bytes int) *signal.Error {
	if len(r.participants) == 0 {
		return nil
	}
	return r.announcements.Take(b, bytes, r.now)
}
