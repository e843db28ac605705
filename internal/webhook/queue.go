package webhook

import (
	"math/rand/v2"
	"time"
)

const (
	// maxQueued bounds the events that wait for one endpoint. An event has 350 bytes, and 4 kB with the longest names:
	// 1.4 MB, 16 MB at most.
	maxQueued = 4096
	// maxAge bounds the age of an event that is sent: a restart of a backend or a deployment takes minutes.
	maxAge = 10 * time.Minute
	// maxInFlight bounds the requests to one endpoint at the same time, each for another room.
	maxInFlight = 8
	// firstRetry is the time before the first repetition. The time doubles with each repetition, up to lastRetry, and
	// is then shortened at random by up to a quarter, so that the rooms' repetitions spread.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// event is an encoded event.
type event struct {
	id   string
	body []byte
	at   time.Time
}

// line has the waiting events of one room, the oldest first. At most the oldest is in flight, which keeps the order.
type line struct {
	room     string
	events   []event
	inFlight bool
	// failures is the number of failed deliveries since the last successful one, and due the time of the next. Events
	// that are dropped change neither, so that an endpoint that is down gets no more requests from a full queue.
	failures int
	due      time.Time
}

// queue has the events that wait for one endpoint. A queue is not safe for concurrent use.
type queue struct {
	// lines are the rooms with events. The line that was served least recently is first.
	lines  []*line
	byRoom map[string]*line
	length int
	flying int

	delivered, full, expired uint64
}

func newQueue() *queue { return &queue{byRoom: make(map[string]*line)} }

// push adds an event of a room. If the queue is full, the oldest waiting event of the room with the most events is
// dropped, so that one busy room costs the others nothing.
func (q *queue) push(room string, e event) {
	if q.length >= maxQueued {
		q.dropLongest()
	}
	l := q.byRoom[room]
	if l == nil {
		l = &line{room: room}
		q.byRoom[room] = l
		q.lines = append(q.lines, l)
	}
	l.events = append(l.events, e)
	q.length++
}

// dropLongest drops an event of the longest line, but not the event in flight.
func (q *queue) dropLongest() {
	var longest *line
	for _, l := range q.lines {
		if longest == nil || l.waiting() > longest.waiting() {
			longest = l
		}
	}
	if longest == nil || longest.waiting() == 0 {
		// As many events are in flight as the queue holds, which maxInFlight rules out.
		return
	}
	q.full++
	if longest.inFlight {
		longest.events = append(longest.events[:1], longest.events[2:]...)
		q.length--
		return
	}
	q.shift(longest)
}

// waiting returns the number of events that are not in flight.
func (l *line) waiting() int {
	if l.inFlight {
		return len(l.events) - 1
	}
	return len(l.events)
}

// shift removes the oldest event of a line, and the line with its last event.
func (q *queue) shift(l *line) {
	l.events[0] = event{}
	l.events = l.events[1:]
	q.length--
	if len(l.events) == 0 {
		q.removeLine(l)
	}
}

func (q *queue) removeLine(l *line) {
	delete(q.byRoom, l.room)
	for i, other := range q.lines {
		if other == l {
			q.lines = append(q.lines[:i], q.lines[i+1:]...)
			return
		}
	}
}

// next returns the line whose oldest event is to be sent, and marks the event as in flight. next returns nil if nothing
// is due at the time now, or enough is in flight. Events that are too old are dropped.
func (q *queue) next(now time.Time) *line {
	if q.flying >= maxInFlight {
		return nil
	}
	for i := 0; i < len(q.lines); {
		l := q.lines[i]
		if l.inFlight || l.due.After(now) {
			i++
			continue
		}
		for len(l.events) > 0 && now.Sub(l.events[0].at) > maxAge {
			q.expired++
			q.shift(l)
		}
		if len(l.events) == 0 {
			// The next line has taken the place.
			continue
		}
		l.inFlight = true
		q.flying++
		// The line becomes the last one.
		q.lines = append(append(q.lines[:i], q.lines[i+1:]...), l)
		return l
	}
	return nil
}

// finish ends the delivery of the oldest event of a line.
func (q *queue) finish(l *line, delivered bool, now time.Time) {
	l.inFlight = false
	q.flying--
	if delivered {
		q.delivered++
		l.failures, l.due = 0, time.Time{}
		q.shift(l)
		return
	}
	l.due = now.Add(retryAfter(l.failures))
	l.failures++
}

// retryAfter returns the time before the next delivery after a number of earlier failures.
func retryAfter(failures int) time.Duration {
	wait := lastRetry
	if failures < 6 {
		wait = firstRetry << failures
	}
	return wait - rand.N(wait/4)
}

// wake returns the time at which next is to be called again if nothing else happens, zero if there is none.
func (q *queue) wake() (at time.Time) {
	if q.flying >= maxInFlight {
		return time.Time{}
	}
	for _, l := range q.lines {
		if !l.inFlight && (at.IsZero() || l.due.Before(at)) {
			at = l.due
		}
	}
	return at
}
