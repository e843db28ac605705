package member

import (
	"reflect"
	"sync"

	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// queueLimit is the number of waiting events of this node's rooms from which lossy data messages are dropped.
const queueLimit = 8192

// queue has what the rooms and the entry of this node have published and the goroutine of the Member has not processed.
// The methods are safe for concurrent use.
type queue struct {
	// filled has an entry if there is something to process.
	filled chan struct{}

	mu sync.Mutex
	// events are in their order. latest has the index of the latest state of a publication.
	events   []localEvent
	latest   map[latestKey]int
	shares   []share
	draining bool
	// dropped counts lossy data messages beyond the limit since the last take.
	dropped uint64
}

// localEvent is an event of a room of this node.
type localEvent struct {
	room  string
	event roomevent.Event
}

// latestKey identifies a state of a publication, of which only the latest counts.
type latestKey struct {
	room string
	kind reflect.Type
	node string
	ref  volumetric.PublicationRef
	id   uint64
}

// share is a session whose record a node receives before the session moves there.
type share struct{ session, node string }

func newQueue() *queue {
	return &queue{filled: make(chan struct{}, 1), latest: make(map[latestKey]int)}
}

// Tell implements sfu.Cluster.
func (q *queue) Tell(room string, e roomevent.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := latestKey{room: room, kind: reflect.TypeOf(e)}
	switch e := e.(type) {
	case roomevent.Posed:
		key.ref, key.node = e.Ref, e.Node
	case roomevent.Rates:
		key.ref, key.id = e.Ref, e.ID
	case roomevent.GaveUp:
		key.ref, key.id = e.Ref, e.ID
	case roomevent.Take:
		key.ref, key.node, key.id = e.Ref, e.Node, e.ID
	case roomevent.Sent:
		if len(q.events) >= queueLimit && e.Data.Lossy {
			q.dropped++
			return
		}
	}
	if key.ref.Participant != "" {
		if at, ok := q.latest[key]; ok {
			q.events[at].event = nil
		}
		q.latest[key] = len(q.events)
	}
	q.events = append(q.events, localEvent{room, e})
	q.signal()
}

// signal wakes the goroutine. The caller holds the mutex.
func (q *queue) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// Share sends the record of a session of this node to a node, before the session moves there.
func (q *queue) Share(session, node string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shares = append(q.shares, share{session, node})
	q.signal()
}

// drain sets the status draining.
func (q *queue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.draining = true
	q.signal()
}

// taken has the content of a queue.
type taken struct {
	events   []localEvent
	shares   []share
	draining bool
	dropped  uint64
}

// take empties the queue. The status draining stays.
func (q *queue) take() taken {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := taken{q.events, q.shares, q.draining, q.dropped}
	q.events, q.shares, q.dropped = nil, nil, 0
	clear(q.latest)
	return t
}
