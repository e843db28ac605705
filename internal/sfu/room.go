package sfu

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
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
	participants map[string]*participant
	// drained is when the server will stop, zero while it will not.
	drained time.Time
	// ending says that the server stops: joins that were on their way are refused.
	ending bool

	// now is the time of the request at hand; clock is time.Now but in tests, to measure what requests cost.
	now   time.Time
	clock func() time.Time
	// credit is the time that may be spent on decisions that are due sometime, as of the tick at ticked.
	credit time.Duration
	ticked time.Time
	// alarm wakes the room at wakeAt, zero where nothing is due. nextTick is when it is looked again whether qualities are still right.
	alarm            *time.Timer
	wakeAt, nextTick time.Time
	around           surroundings
	allocator        allocator
	unsettled        unsettled
}

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
		participants: make(map[string]*participant),
		now:          time.Now(),
		clock:        time.Now,
		alarm:        alarm,
		allocator:    allocator,
	}
}

// run is the room's goroutine. It ends when the node says so, which it does when nobody is in the room.
func (r *Room) run(end <-chan struct{}) {
	defer r.node.running.Done()
	defer close(r.done)
	for {
		select {
		case q := <-r.requests:
			r.do(time.Now(), q)
		case <-r.alarm.C:
			r.do(time.Now(), wake{})
		case <-end:
			r.alarm.Stop()
			return
		}
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

// others are the participants but one, in the order of their names.
func (r *Room) others(except *participant) []*participant {
	var others []*participant
	for _, p := range r.participants {
		if p != except {
			others = append(others, p)
		}
	}
	slices.SortFunc(others, func(a, b *participant) int { return compareStrings(a.identity, b.identity) })
	return others
}

// broadcast tells everybody but one. Each gets a message of its own, since sending fills in the type.
func (r *Room) broadcast(except *participant, message func() signal.Message) {
	for _, p := range r.others(except) {
		p.send(message())
	}
}

// publication finds a publication by names, nil where there is none.
func (r *Room) publication(ref volumetric.PublicationRef) *publication {
	if p, ok := r.participants[ref.Participant]; ok {
		return p.publication(ref.Publication)
	}
	return nil
}

// describe lists what a newcomer must know of the others.
func (r *Room) describe(except *participant) []signal.Participant {
	list := []signal.Participant{}
	for _, p := range r.others(except) {
		list = append(list, p.describe())
	}
	return list
}

// remove ends a participant: publications, connection, place in the room. The others hear the reason.
func (r *Room) remove(p *participant, reason string) {
	if r.participants[p.identity] != p {
		return
	}
	for _, publication := range slices.Clone(p.publications) {
		r.unpublish(p, publication, false)
	}
	p.slots.release()
	delete(r.participants, p.identity)
	p.gone = true
	p.connection.dismiss()
	r.node.forget(p)
	p.trace(false)
	r.askForTimes()
	r.broadcast(p, func() signal.Message { return &signal.ParticipantLeft{Identity: p.identity, Reason: reason} })
	p.log.Info("participant left", zap.String("reason", reason))
}

// publish adds a publication. Nobody hears of it before announce.
func (r *Room) publish(p *participant, description volumetric.Publication) *signal.Error {
	config := r.node.config
	switch {
	case !p.grants.Publish:
		return refuse(signal.CodeForbidden, "the token does not grant publishing")
	case p.publication(description.Name) != nil:
		return refuse(signal.CodeExists, "publication %q exists already", description.Name)
	case len(p.publications) >= config.PublicationsPerParticipant:
		return refuse(signal.CodeLimit, "%d publications are the limit", config.PublicationsPerParticipant)
	}
	if err := description.Validate(); err != nil {
		return refuse(signal.CodeInvalid, "%v", err)
	}
	if n := description.TrackCount(); n > config.TracksPerPublication {
		return refuse(signal.CodeLimit, "publication %q has %d tracks, the limit is %d", description.Name, n, config.TracksPerPublication)
	}
	encoded, refused := r.checkRoom(p, &description)
	if refused != nil {
		return refused
	}
	if description.VR2Gather {
		r.giveNumber(p)
	}
	converted := p.vr2gather != nil
	publication := newPublication(r.node.engine, p.identity, description, converted, nextGroup)
	publication.client, publication.silent, publication.encoded = p.number, converted, encoded
	if p.pauses {
		publication.begin(config.Suppression, &r.unsettled, r.now)
	}
	p.publications = append(p.publications, publication)
	p.attachData(publication)
	r.wakeBy(r.now.Add(unwatchedInterval))
	p.log.Info("published", zap.String("publication", description.Name), zap.String("codec", description.Codec.MIMEType),
		zap.Int("tiles", len(description.Tiles)), zap.Int("qualities", len(description.Qualities)))
	return nil
}

// checkRoom measures the description of another publication, and refuses it where newcomers could not be told of all any more. Somebody who joins anew takes the
// place of what was there under the name.
func (r *Room) checkRoom(p *participant, description *volumetric.Publication) (encoded int, refused *signal.Error) {
	text, err := json.Marshal(description)
	if err != nil {
		return 0, refuse(signal.CodeInvalid, "%v", err)
	}
	own := len(text) + describedBytes(p.publications)
	all := own
	for _, other := range r.participants {
		if other.identity != p.identity {
			all += describedBytes(other.publications)
		}
	}
	limit := r.node.config.DescriptionBytes
	if all > limit || own > limit/descriptionShare {
		return 0, refuse(signal.CodeLimit, "the descriptions of publications would have %d bytes in this room, %d of them this participant's: the limits are %d and %d",
			all, own, limit, limit/descriptionShare)
	}
	return len(text), nil
}

// describedBytes is how many bytes of JSON the descriptions of publications have.
func describedBytes(publications []*publication) (sum int) {
	for _, p := range publications {
		sum += p.encoded
	}
	return sum
}

// publishedByOthers are the publications of everybody but one.
func (r *Room) publishedByOthers(p *participant) []*publication {
	var publications []*publication
	for _, other := range r.others(p) {
		publications = append(publications, announced(other.publications)...)
	}
	return publications
}

// announce gives the others slots for publications, after they were told of them.
func (r *Room) announce(p *participant, publications []*publication) {
	for _, other := range r.others(p) {
		other.subscribe(publications)
	}
}

// unpublish ends a publication; announce says whether the others hear of it, which they need not where its owner leaves.
func (r *Room) unpublish(p *participant, publication *publication, announce bool) {
	first := !r.second(publication)
	p.publications = slices.DeleteFunc(p.publications, isPublication(publication))
	if p.carriesByData(publication) {
		p.connection.data.remove(publication)
	}
	for _, track := range publication.tracks {
		p.connection.ingress.Unbind(track)
	}
	publication.close()
	r.end(publication)
	for _, other := range r.others(p) {
		other.unsubscribe(publication)
		if announce {
			other.send(&signal.Unpublished{PublicationRef: publication.ref})
		}
	}
	if announce {
		p.updateLines()
		if first {
			r.succeed(p, publication.description.Kind)
		}
	}
}
