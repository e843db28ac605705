package signalling

import (
	"context"
	"strconv"
	"sync"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Requests are the messages to the server that wait for a reply.
type Requests struct {
	mu      sync.Mutex
	made    int
	pending map[string]chan signal.Message
	// resumed is closed when the session continues on another websocket. It is nil while no caller waits for that.
	resumed chan struct{}
}

// NewRequests returns an empty set of requests.
func NewRequests() *Requests { return &Requests{pending: make(map[string]chan signal.Message)} }

// Open returns the ID of a new request, and the channel of its reply. The channel is closed without a reply if the
// websocket breaks first.
func (r *Requests) Open() (id string, reply <-chan signal.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	id = strconv.Itoa(r.made)
	waiting := make(chan signal.Message, 1)
	r.pending[id] = waiting
	return id, waiting
}

// Close ends a request. A later reply is ignored.
func (r *Requests) Close(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, id)
}

// Reply reports whether a message is the reply to a request, and delivers it. A second reply is ignored.
func (r *Requests) Reply(m signal.Message) bool {
	id := m.Head().ID
	if id == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.pending[id]
	if waiting == nil {
		return false
	}
	select {
	case waiting <- m:
	default:
	}
	return true
}

// Abandon ends the wait for replies on a broken websocket, which the server does not repeat, and the wait for another
// websocket.
func (r *Requests) Abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resume()
	for id, waiting := range r.pending {
		close(waiting)
		delete(r.pending, id)
	}
}

// resume ends the wait for another websocket. The caller holds the lock.
func (r *Requests) resume() {
	if r.resumed != nil {
		close(r.resumed)
		r.resumed = nil
	}
}

// Move ends the wait for another websocket, and returns the number of requests so far: the replies to these still come
// over the former websocket.
func (r *Requests) Move() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resume()
	return r.made
}

// AbandonUntil ends the wait for the replies to the first made requests: their websocket has ended.
func (r *Requests) AbandonUntil(made int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, waiting := range r.pending {
		if number, err := strconv.Atoi(id); err == nil && number <= made {
			close(waiting)
			delete(r.pending, id)
		}
	}
}

// Resumed returns a channel that is closed when the session continues on another websocket.
func (r *Requests) Resumed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resumed == nil {
		r.resumed = make(chan struct{})
	}
	return r.resumed
}

// Await waits for a reply until the context of the request or of the session ends. A reply that has arrived counts even
// if a context has ended, as when the server replies and then ends the session. open is false if the request was
// abandoned.
func Await(ctx, session context.Context, reply <-chan signal.Message) (m signal.Message, open bool, err error) {
	select {
	case m, open = <-reply:
		return m, open, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-session.Done():
		err = context.Cause(session)
	}
	select {
	case m, open = <-reply:
		return m, open, nil
	default:
		return nil, false, err
	}
}
