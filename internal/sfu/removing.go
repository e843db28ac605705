package sfu

import (
	"context"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/signal"
)

// ErrNotFound says that there is no such room, or nobody of that name in it.
var ErrNotFound = errors.New("not found")

// removeRequest removes one participant, or everybody where the identity is empty. What came of it goes to the channel.
type removeRequest struct {
	identity string
	code     signal.Code
	reason   string
	result   chan<- bool
}

// apply implements request.
func (q removeRequest) apply(r *Room) {
	found := false
	for _, p := range r.others(nil) {
		if q.identity == "" || p.identity == q.identity {
			found = true
			r.expel(p, q.code, q.reason)
		}
	}
	q.result <- found
}

// Kick removes a participant from a room, for good: a client that is told so does not come back by itself. The error wraps ErrNotFound where there is no such.
func (n *Node) Kick(ctx context.Context, room, identity string) error {
	if identity == "" {
		return fmt.Errorf("%w: a participant without a name", ErrNotFound)
	}
	return n.removeFrom(ctx, room, removeRequest{identity: identity, code: signal.CodeKicked, reason: "removed by an operator"})
}

// CloseRoom removes everybody from a room. The error wraps ErrNotFound where there is no such room.
func (n *Node) CloseRoom(ctx context.Context, room string) error {
	return n.removeFrom(ctx, room, removeRequest{code: signal.CodeClosed, reason: "an operator closed the room"})
}

func (n *Node) removeFrom(ctx context.Context, name string, q removeRequest) error {
	n.mu.Lock()
	o := n.rooms[name]
	n.mu.Unlock()
	if o == nil {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	result := make(chan bool, 1)
	q.result = result
	o.room.post(q)
	found, answered := hear(ctx, o.room, result)
	if found {
		return nil
	}
	if err := ctx.Err(); err != nil && !answered {
		return err
	}
	if q.identity == "" {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	return fmt.Errorf("%w: %q in room %q", ErrNotFound, q.identity, name)
}
