package sfu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// ErrNotFound says that there is no such room, or nobody of that name in it.
var ErrNotFound = errors.New("not found")

// removeRequest removes one participant, or everybody where the identity is empty. What came of it goes to the channel.
type removeRequest struct {
	identity string
	code     signal.Code
	reason   string
	// until is how long the token of the participant is kept from the room, zero if it is not.
	until  time.Time
	result chan<- bool
}

// apply implements request.
func (q removeRequest) apply(r *Room) {
	found := false
	for _, p := range r.others(nil) {
		if q.identity == "" || p.identity == q.identity {
			found = true
			if !q.until.IsZero() {
				ban := Ban{Room: r.name, Identity: p.identity, TokenID: p.token.ID, Until: q.until}
				if err := r.node.exclusions.ban(ban, r.now); err != nil {
					p.log.Warn("the token of a participant that is removed is not kept from the room", errorField(err))
				}
			}
			r.expel(p, q.code, q.reason)
		}
	}
	q.result <- found
}

// CloseRoom removes everybody from a room. The error wraps ErrNotFound where there is no such room.
func (n *Node) CloseRoom(ctx context.Context, room string) error {
	return n.removeFrom(ctx, room, removeRequest{code: signal.CodeClosed, reason: "an operator closed the room"})
}

func (n *Node) removeFrom(ctx context.Context, name string, q removeRequest) error {
	room := n.room(name)
	if room == nil {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	result := make(chan bool, 1)
	q.result = result
	room.post(q)
	found, answered := hear(ctx, room, result)
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
