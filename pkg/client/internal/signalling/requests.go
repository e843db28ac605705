package signalling

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Errors of requests.
var (
	// ErrNotConnected means that there is no connection yet.
	ErrNotConnected = errors.New("not connected")
	// ErrInterrupted means that the websocket broke before the reply to a request. The server may have carried the
	// request out.
	ErrInterrupted = errors.New("interrupted before the reply")
)

// Requests makes the requests of a session over the websocket to the present server, and waits for the replies.
type Requests struct {
	// session is the context of the session.
	session context.Context

	mu sync.Mutex
	// conn is the websocket to the present server, nil before the join.
	conn    *Conn
	made    int
	pending map[string]chan signal.Message
	// resumed is closed when the session continues on another websocket. It is nil while no caller waits for that.
	resumed chan struct{}
}

// NewRequests returns the requests of a session without a websocket. session ends with the session. Its cause is the
// error of requests without a reply.
func NewRequests(session context.Context) *Requests {
	return &Requests{session: session, pending: make(map[string]chan signal.Message)}
}

// Conn returns the websocket to the present server.
func (r *Requests) Conn() *Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// Do makes a request and waits for its reply. A refusal of the server is a *signal.Error. Other errors wrap
// ErrNotConnected, ErrUnsent, ErrInterrupted, or the cause for which a context has ended.
func (r *Requests) Do(ctx context.Context, m signal.Message) (signal.Message, error) {
	id, reply, conn := r.open()
	defer r.close(id)
	if conn == nil {
		return nil, ErrNotConnected
	}
	m.Head().ID = id
	if err := conn.Send(m); err != nil {
		return nil, err
	}
	answer, open, err := await(ctx, r.session, reply)
	if err != nil {
		return nil, err
	}
	if !open {
		return nil, fmt.Errorf("%s: %w", m.Head().Type, ErrInterrupted)
	}
	if refused, ok := answer.(*signal.Error); ok {
		return nil, refused
	}
	return answer, nil
}

// Settle makes a request. If the session moves to another server meanwhile, the request is made there, too: that server
// may have taken the state of the session before.
func (r *Requests) Settle(ctx context.Context, message func() signal.Message) error {
	for {
		before := r.Conn()
		if _, err := r.Do(ctx, message()); err != nil || r.Conn() == before {
			return err
		}
	}
}

// Insist repeats a request until there is a reply, if necessary on the next websocket. done is the code of the server
// for a request that it carried out before an interruption.
func (r *Requests) Insist(ctx context.Context, done signal.Code, message func() signal.Message) error {
	for interrupted := false; ; {
		resumed := r.waitResumed()
		_, err := r.Do(ctx, message())
		var refused *signal.Error
		switch {
		case errors.Is(err, ErrInterrupted):
			interrupted = true
		case errors.Is(err, ErrUnsent):
			select {
			case <-resumed:
			case <-ctx.Done():
				return errors.Join(ctx.Err(), err)
			case <-r.session.Done():
				return context.Cause(r.session)
			}
		case interrupted && errors.As(err, &refused) && refused.Code == done:
			return nil
		default:
			return err
		}
	}
}

// open returns the ID of a new request, the channel of its reply, and the present websocket. The channel is closed
// without a reply if the websocket breaks first.
func (r *Requests) open() (id string, reply <-chan signal.Message, conn *Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	id = strconv.Itoa(r.made)
	waiting := make(chan signal.Message, 1)
	r.pending[id] = waiting
	return id, waiting, r.conn
}

// close ends a request. A later reply is ignored.
func (r *Requests) close(id string) {
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

// Continue sets the websocket on which the session begins or continues. It ends the wait for replies on a former
// websocket, which the server does not repeat, and the wait for another websocket.
func (r *Requests) Continue(conn *Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = conn
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

// Move sets the websocket to the server to which the session moves, ends the wait for another websocket, and returns
// the number of requests so far: the replies to these still come over the former websocket.
func (r *Requests) Move(conn *Conn) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = conn
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

// waitResumed returns a channel that is closed when the session continues on another websocket.
func (r *Requests) waitResumed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resumed == nil {
		r.resumed = make(chan struct{})
	}
	return r.resumed
}

// await waits for a reply until the context of the request or of the session ends. A reply that has arrived counts even
// if a context has ended, as when the server replies and then ends the session. open is false if the request was
// abandoned.
func await(ctx, session context.Context, reply <-chan signal.Message) (m signal.Message, open bool, err error) {
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
