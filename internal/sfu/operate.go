package sfu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/admission"
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
	for _, p := range r.participants.others(nil) {
		if q.identity == "" || p.identity == q.identity {
			found = true
			if !q.until.IsZero() {
				ban := admission.Ban{Room: r.name, Identity: p.identity, TokenID: p.token.ID, Until: q.until}
				if err := r.node.exclusions.Ban(ban, r.now); err != nil {
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
	found, answered := await(ctx, room, result)
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

// Bans lists the bans in force.
func (n *Node) Bans() []admission.Ban { return n.exclusions.Bans(time.Now()) }

// Unban ends a ban. The error wraps ErrNotFound if there is none.
func (n *Node) Unban(room, identity string) error {
	if !n.exclusions.Unban(room, identity, time.Now()) {
		return fmt.Errorf("%w: a ban of %q in room %q", ErrNotFound, identity, room)
	}
	return nil
}

// Revoke has a token be refused, by its id, and ends the sessions that it opened, with the code revoked. The revocation
// lasts until the token has ended, as soon as the server knows when that is; until then for the time given, or
// admission.DefaultRevocation if that is 0. The error wraps admission.ErrExclusion or admission.ErrFull.
func (n *Node) Revoke(id string, lasts time.Duration) error {
	if err := admission.CheckRevocation(id, lasts); err != nil {
		return err
	}
	if lasts == 0 {
		lasts = admission.DefaultRevocation
	}
	now := time.Now()
	if err := n.exclusions.Revoke(id, now.Add(lasts), now); err != nil {
		return err
	}
	// A join that has not seen the revocation is in its room's channel already, before this.
	n.toAll(revokedRequest{id})
	return nil
}

// Revoked reports whether a token is revoked.
func (n *Node) Revoked(t admission.Token) bool { return n.exclusions.Revoked(t, time.Now()) }

// Revocations lists the revocations in force.
func (n *Node) Revocations() []admission.Revocation { return n.exclusions.Revocations(time.Now()) }

// Restore has a revoked token be accepted again. The error wraps ErrNotFound if the token is not revoked.
func (n *Node) Restore(id string) error {
	if !n.exclusions.Restore(id, time.Now()) {
		return fmt.Errorf("%w: a revocation of token %q", ErrNotFound, id)
	}
	return nil
}

// revokedRequest removes the participants whose token was revoked.
type revokedRequest struct{ id string }

// apply implements request.
func (q revokedRequest) apply(r *Room) {
	for _, p := range r.participants.others(nil) {
		if p.token.ID == q.id && r.node.exclusions.Revoked(p.token, r.now) {
			p.log.Info("the participant's token was revoked", zap.String("token_id", q.id))
			r.expel(p, signal.CodeRevoked, "an operator revoked the token")
		}
	}
}

// Kick removes a participant from a room: a client that is told so does not come back by itself. If the ban is longer
// than 0, the identity, and the token that the participant has, are kept from the room for that time, also if the
// participant is not there. The error wraps ErrNotFound if there is no such participant and no ban, or
// admission.ErrExclusion or admission.ErrFull.
func (n *Node) Kick(ctx context.Context, room, identity string, ban time.Duration) error {
	if identity == "" {
		return fmt.Errorf("%w: a participant without a name", ErrNotFound)
	}
	q := removeRequest{identity: identity, code: signal.CodeKicked, reason: "removed by an operator"}
	if ban != 0 {
		if err := admission.CheckBan(room, identity, ban); err != nil {
			return err
		}
		now := time.Now()
		q.until = now.Add(ban)
		err := n.exclusions.Ban(admission.Ban{Room: room, Identity: identity, Until: q.until}, now)
		if err != nil {
			return err
		}
	}
	err := n.removeFrom(ctx, room, q)
	if ban != 0 && errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
